import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.proxy2.ClientSingleEndpoint;
import org.eclipse.californium.proxy2.Coap2CoapTranslator;
import org.eclipse.californium.proxy2.config.Proxy2Config;
import org.eclipse.californium.proxy2.http.Http2CoapTranslator;
import org.eclipse.californium.proxy2.http.server.ProxyHttpServer;
import org.eclipse.californium.proxy2.resources.ForwardProxyMessageDeliverer;
import org.eclipse.californium.proxy2.resources.ProxyCoapClientResource;

/**
 * Californium's proxy2 as a forward proxy for CoAP, and for HTTP at 127.0.0.1:8080/proxy/, with its default settings: Gateway HOST PORT.
 */
public class Gateway {
    public static void main(String[] args) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        Proxy2Config.register();
        Configuration config = Configuration.createStandardWithoutFile();
        CoapEndpoint out = CoapEndpoint.builder().setConfiguration(config).build();
        out.start();
        Coap2CoapTranslator translator = new Coap2CoapTranslator();
        ProxyCoapClientResource forward =
            new ProxyCoapClientResource("coap2coap", true, true, translator, new ClientSingleEndpoint(out));
        CoapServer server = new CoapServer(config);
        InetSocketAddress own = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(config).setInetSocketAddress(own).build());
        ForwardProxyMessageDeliverer deliverer = new ForwardProxyMessageDeliverer(server.getRoot(), translator, config);
        server.setMessageDeliverer(deliverer.addProxyCoapResources(forward));
        server.start();
        ProxyHttpServer.buider()
            .setConfiguration(config)
            .setInetSocketAddress(new InetSocketAddress("127.0.0.1", 8080))
            .setHttpTranslator(new Http2CoapTranslator())
            .setExecutor(Executors.newCachedThreadPool())
            .setProxyCoapDeliverer(deliverer)
            .build()
            .start();
        System.out.println("proxy at " + own);
        Thread.currentThread().join();
    }
}
