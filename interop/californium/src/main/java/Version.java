import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import org.eclipse.californium.core.coap.Option;
import org.eclipse.californium.core.coap.option.OpaqueOptionDefinition;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.auth.RawPublicKeyIdentity;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.tcp.netty.TcpClientConnector;
import org.eclipse.californium.elements.tcp.netty.TcpServerConnector;
import org.eclipse.californium.elements.util.SslContextUtil;
import org.eclipse.californium.oscore.ContextRederivation;
import org.eclipse.californium.oscore.HashMapCtxDB;
import org.eclipse.californium.oscore.OSCoreCtx;
import org.eclipse.californium.oscore.OSCoreCtxDB;
import org.eclipse.californium.oscore.OSException;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.CertificateType;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedMultiPskStore;
import org.eclipse.californium.scandium.dtls.x509.SingleCertificateProvider;
import org.eclipse.californium.scandium.dtls.x509.StaticNewAdvancedCertificateVerifier;

/** What Matrix.java needs of Californium 3: its transports, OSCORE and options. Another release has another file instead of this. */
class Version {
    static final boolean OSCORE = System.getenv("INTEROP_OSCORE") != null;
    static final boolean RENEWED = "renewed".equals(System.getenv("INTEROP_OSCORE"));

    static Option option(int number, byte[] value) {
        return new Option(new OpaqueOptionDefinition(number, "Option " + number), value);
    }

    static byte[] value(Option option) {
        return option.getValue();
    }

    static CoapEndpoint endpoint(InetSocketAddress address, String scheme, boolean server) {
        if (scheme.equals("coaps")) DtlsConfig.register();
        Configuration configuration = Matrix.configuration();
        CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(configuration);
        if (scheme.equals("coap+tcp"))
            builder.setConnector(server
                ? new TcpServerConnector(address, configuration) : new TcpClientConnector(configuration));
        else if (scheme.equals("coaps")) {
            DtlsConnectorConfig.Builder dtls = DtlsConnectorConfig.builder(configuration);
            String certificates = System.getenv("INTEROP_CERTIFICATES");
            String raw = System.getenv("INTEROP_RAW_KEYS");
            if (certificates != null) show(dtls, certificates);
            else if (raw != null) showRaw(dtls, raw);
            else {
                AdvancedMultiPskStore keys = new AdvancedMultiPskStore();
                byte[] key = "sesame-of-interop".getBytes(StandardCharsets.US_ASCII);
                keys.setKey("matrix", key);
                if (address != null && !server) keys.addKnownPeer(address, "matrix", key);
                dtls.setAdvancedPskStore(keys);
            }
            dtls.setAddress(server ? address : new InetSocketAddress(0));
            dtls.set(DtlsConfig.DTLS_ROLE,
                server ? DtlsConfig.DtlsRole.SERVER_ONLY : DtlsConfig.DtlsRole.CLIENT_ONLY);
            // The length of its own connection IDs; without it, none are negotiated.
            String cid = System.getenv("INTEROP_CID");
            dtls.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, cid == null ? null : Integer.valueOf(cid));
            builder.setConnector(new DTLSConnector(dtls.build()));
        } else if (server) builder.setInetSocketAddress(address);
        if (OSCORE) OscoreContexts.endpoint(builder, contexts(server, address));
        return builder.build();
    }

    /** The context of ../README.md. */
    static OSCoreCtxDB contexts(boolean server, InetSocketAddress address) {
        byte[] ours = (server ? "server" : "client").getBytes(StandardCharsets.US_ASCII);
        byte[] theirs = (server ? "client" : "server").getBytes(StandardCharsets.US_ASCII);
        try {
            HashMapCtxDB contexts = new HashMapCtxDB();
            OSCoreCtx context = OscoreContexts.context(ours, theirs, null);
            context.setContextRederivationEnabled(RENEWED);
            if (RENEWED && !server) context.setContextRederivationPhase(ContextRederivation.PHASE.CLIENT_INITIATE);
            if (server) contexts.addContext(context);
            else contexts.addContext("coap://" + address.getHostString() + ":" + address.getPort(), context);
            return contexts;
        } catch (OSException error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** Its own key from a folder, which is the key of the others as well, without a certificate. */
    static void showRaw(DtlsConnectorConfig.Builder dtls, String folder) {
        try {
            SslContextUtil.Credentials own = SslContextUtil.loadCredentials(folder + "/peer.pem");
            PublicKey key = own.getCertificateChain()[0].getPublicKey();
            dtls.setCertificateIdentityProvider(new SingleCertificateProvider(own.getPrivateKey(), key));
            dtls.setAdvancedCertificateVerifier(StaticNewAdvancedCertificateVerifier.builder()
                .setTrustedRPKs(new RawPublicKeyIdentity(key)).build());
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** Its own certificate, and the authority of the others, from a folder. */
    static void show(DtlsConnectorConfig.Builder dtls, String folder) {
        try {
            SslContextUtil.Credentials own = SslContextUtil.loadCredentials(folder + "/peer.pem");
            dtls.setCertificateIdentityProvider(new SingleCertificateProvider(
                own.getPrivateKey(), own.getCertificateChain(), CertificateType.X_509));
            dtls.setAdvancedCertificateVerifier(StaticNewAdvancedCertificateVerifier.builder()
                .setTrustedCertificates(SslContextUtil.loadTrustedCertificates(folder + "/authority.pem"))
                .build());
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }
}
