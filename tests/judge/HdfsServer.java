import java.io.File;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A NameNode and three DataNodes on loopback, until standard input ends.
 *
 * <p>Argument: the folder of their data. The first line of standard output is the cluster's URI.
 */
public final class HdfsServer {
  private HdfsServer() {}

  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new Configuration();
    configuration.setInt("dfs.replication", 3);
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(configuration, new File(arguments[0])).numDataNodes(3).build();
    cluster.waitActive();
    System.out.println(cluster.getURI());
    System.in.transferTo(OutputStream.nullOutputStream());
    System.exit(0);
  }
}
