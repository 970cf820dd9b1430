import java.net.InetSocketAddress;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.tcp.netty.TcpClientConnector;
import org.eclipse.californium.elements.tcp.netty.TcpServerConnector;
import org.eclipse.californium.oscore.HashMapCtxDB;

/**
 * What ../README.md asks of a peer: Interop server PORT [HOST [tcp]], plugtest-server PORT HOST MILLISECONDS,
 * client BASE [count|lossy|plugtest|plugtest-lossy], oscore-server PORT HOST MILLISECONDS PORT, oscore-client BASE BASE, or as the matrix's adapter matrix-server PORT HOST SCHEME or ask URI
 */
public class Interop {
    static CoapEndpoint.Builder endpoint() {
        return CoapEndpoint.builder().setConfiguration(Matrix.configuration());
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("ask")) {
            Matrix.main(args);
        } else if (args[0].equals("matrix-server")) {
            args[0] = "server";
            Matrix.main(args);
        } else if (args[0].equals("plugtest-server")) {
            PlugtestServer.serve(args[2], Integer.parseInt(args[1]), Integer.parseInt(args[3]));
        } else if (args[0].equals("oscore-server")) {
            OscoreServer.serve(args[2], Integer.parseInt(args[1]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        } else if (args[0].equals("oscore-client")) {
            new OscoreClient(new HashMapCtxDB(), args[1], args[2]).run();
        } else if (args[0].equals("server")) {
            String host = args.length > 2 ? args[2] : "127.0.0.1";
            CoapServer server = new CoapServer(Matrix.configuration());
            InetSocketAddress address = new InetSocketAddress(host, Integer.parseInt(args[1]));
            CoapEndpoint.Builder endpoint = endpoint();
            if (args.length > 3 && args[3].equals("tcp"))
                endpoint.setConnector(new TcpServerConnector(address, Matrix.configuration()));
            else endpoint.setInetSocketAddress(address);
            server.addEndpoint(endpoint.build());
            server.add(Resources.all());
            server.start();
            System.out.println("ready");
        } else {
            String what = args.length > 2 ? args[2] : "all";
            Configuration configuration = Matrix.configuration();
            // The descriptions of block-wise transfers have several blocks.
            if (what.startsWith("plugtest"))
                configuration.set(CoapConfig.PREFERRED_BLOCK_SIZE, 64).set(CoapConfig.MAX_MESSAGE_SIZE, 64);
            CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(configuration);
            if (args[1].startsWith("coap+tcp:"))
                builder.setConnector(new TcpClientConnector(configuration));
            CoapEndpoint endpoint = builder.build();
            endpoint.start();
            if (what.startsWith("plugtest")) new PlugtestClient(endpoint, args[1], what.endsWith("-lossy")).run();
            else new Client(endpoint, args[1]).run(what);
        }
    }
}
