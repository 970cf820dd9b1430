import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** What ../README.md asks of a peer: Interop server PORT [HOST], or client BASE [count|lossy] */
public class Interop {
    static Configuration configuration() {
        CoapConfig.register();
        UdpConfig.register();
        return Configuration.createStandardWithoutFile()
            .set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 2 << 20)
            .set(CoapConfig.PREFERRED_BLOCK_SIZE, 1024)
            .set(CoapConfig.MAX_MESSAGE_SIZE, 1024)
            // A loopback interface answers soon, and a relay that loses a tenth of all needs more
            // patience.
            .set(CoapConfig.ACK_TIMEOUT, 500, TimeUnit.MILLISECONDS)
            .set(CoapConfig.MAX_RETRANSMIT, 8);
    }

    static CoapEndpoint.Builder endpoint() {
        return CoapEndpoint.builder().setConfiguration(configuration());
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("server")) {
            String host = args.length > 2 ? args[2] : "127.0.0.1";
            CoapServer server = new CoapServer(configuration());
            InetSocketAddress address = new InetSocketAddress(host, Integer.parseInt(args[1]));
            server.addEndpoint(endpoint().setInetSocketAddress(address).build());
            server.add(Resources.all());
            server.start();
            System.out.println("ready");
        } else {
            CoapEndpoint endpoint = endpoint().build();
            endpoint.start();
            new Client(endpoint, args[1]).run(args.length > 2 ? args[2] : "all");
        }
    }
}
