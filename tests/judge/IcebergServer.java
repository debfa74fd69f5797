package org.apache.iceberg.rest;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.DispatcherType;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.eclipse.jetty.ee10.servlet.FilterHolder;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * The REST catalog with which Iceberg tests its own clients, until standard input ends; on loopback
 * only.
 *
 * <p>Arguments: the folder of the catalog, its warehouse, and properties of the catalog as name=value.
 * The first line of standard input is what it accepts, as a bearer token or as the secret of a client
 * whose id is "tests"; the first line of standard output is its address.
 */
public final class IcebergServer {
  private static final String TOKENS = "/v1/oauth/tokens";

  private IcebergServer() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream output = System.out;
    System.setOut(System.err); // where logs go; nobody reads on once the address is told
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String secret = input.readLine();
    Map<String, String> properties = new HashMap<>();
    properties.put("catalog-impl", JdbcCatalog.class.getName());
    properties.put("uri", "jdbc:sqlite:" + arguments[0] + "/catalog.db");
    properties.put("clients", "1"); // SQLite knows no second writer
    properties.put("jdbc.schema-version", "V1");
    properties.put("warehouse", arguments[1]);
    for (int index = 2; index < arguments.length; index++) {
      String[] pair = arguments[index].split("=", 2);
      properties.put(pair[0], pair[1]);
    }
    var catalog = CatalogUtil.buildIcebergCatalog("tests", properties, new Configuration());
    var context = new RESTCatalogServer.CatalogContext(catalog, properties);
    var handler = new ServletContextHandler("/");
    handler.addServlet(new ServletHolder(new RESTCatalogServlet(new Adapter(context, secret))), "/*");
    handler.addFilter(
        new FilterHolder(bearersOf(secret)), "/*", EnumSet.of(DispatcherType.REQUEST));
    var server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    server.setHandler(handler);
    server.start();
    output.println("http://127.0.0.1:" + server.getURI().getPort());
    while (input.readLine() != null) {}
    System.exit(0);
  }

  /** Lets in who brings the secret, or the token that the secret was exchanged for. */
  private static Filter bearersOf(String secret) {
    return (request, response, chain) -> {
      HttpServletRequest asked = (HttpServletRequest) request;
      String bearer = asked.getHeader("Authorization");
      boolean isKnown =
          ("Bearer " + secret).equals(bearer)
              || "Bearer client-credentials-token:sub=tests".equals(bearer);
      if (isKnown || asked.getRequestURI().equals(TOKENS)) {
        chain.doFilter(request, response);
        return;
      }
      HttpServletResponse answer = (HttpServletResponse) response;
      answer.setStatus(401);
      answer.setContentType("application/json");
      answer
          .getWriter()
          .write("{\"error\":{\"message\":\"no\",\"type\":\"NotAuthorizedException\",\"code\":401}}");
    };
  }

  private static final class Adapter extends RESTServerCatalogAdapter {
    private final String secret;

    private Adapter(RESTCatalogServer.CatalogContext context, String secret) {
      super(context);
      this.secret = secret;
    }

    @Override
    public <T extends RESTResponse> T handleRequest(
        Route route,
        Map<String, String> variables,
        HTTPRequest request,
        Class<T> responseType,
        Consumer<Map<String, String>> headers) {
      if (route == Route.TOKENS && !secret.equals(((Map<?, ?>) request.body()).get("client_secret"))) {
        throw new NotAuthorizedException("no");
      }
      return super.handleRequest(route, variables, request, responseType, headers);
    }
  }
}
