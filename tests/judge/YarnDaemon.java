import java.io.OutputStream;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;

/**
 * One daemon of YARN, started as its own script starts it, until standard input ends.
 *
 * <p>Argument: {@code rm} or {@code nm}. Its settings are on the class path. The first line of
 * standard output is its process id, once it serves. Each needs a process of its own: two daemons
 * in one share the filter of their pages, and the ResourceManager's REST API is lost.
 */
public final class YarnDaemon {
  private static final int PATIENCE_MILLIS = 20_000;

  private YarnDaemon() {}

  public static void main(String[] arguments) throws Exception {
    Thread end = new Thread(YarnDaemon::endWithInput, "end");
    end.setDaemon(true);
    end.start();
    if (arguments[0].equals("rm")) {
      ResourceManager.main(new String[0]);
    } else {
      NodeManager.main(new String[0]);
    }
    System.out.println(ProcessHandle.current().pid());
  }

  /** A NodeManager's shutdown hook ends its containers. */
  private static void endWithInput() {
    try {
      System.in.transferTo(OutputStream.nullOutputStream());
      Thread halt = new Thread(YarnDaemon::halt, "halt");
      halt.setDaemon(true);
      halt.start();
    } catch (Exception lost) {
      Runtime.getRuntime().halt(1);
    }
    System.exit(0);
  }

  private static void halt() {
    try {
      Thread.sleep(PATIENCE_MILLIS);
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(1);
  }
}
