import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;

/**
 * The REST catalog with which Paimon tests its own clients, until standard input ends.
 *
 * <p>Arguments: the folder of the tables, the warehouse's name. The first line of standard input is
 * the token that it accepts, the first line of standard output its address.
 */
public final class RestServer {
  private RestServer() {}

  public static void main(String[] arguments) throws Exception {
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Map<String, String> defaults = Map.of("prefix", "tests", "warehouse", arguments[1]);
    RESTCatalogServer server =
        new RESTCatalogServer(
            arguments[0],
            new BearTokenAuthProvider(input.readLine()),
            new ConfigResponse(defaults, Map.of()),
            arguments[1]);
    server.start();
    System.out.println(server.getUrl());
    while (input.readLine() != null) {}
    System.exit(0);
  }
}
