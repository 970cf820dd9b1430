import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import org.eclipse.californium.core.coap.Option;
import org.eclipse.californium.core.coap.option.OpaqueOption;
import org.eclipse.californium.core.coap.option.OptionDefinition;
import org.eclipse.californium.core.coap.option.StandardOptionRegistry;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.auth.RawPublicKeyIdentity;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.util.DatagramReader;
import org.eclipse.californium.elements.util.DatagramWriter;
import org.eclipse.californium.elements.util.SslContextUtil;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.CertificateType;
import org.eclipse.californium.scandium.dtls.pskstore.MultiPskStore;
import org.eclipse.californium.scandium.dtls.x509.SingleCertificateProvider;
import org.eclipse.californium.scandium.dtls.x509.StaticCertificateVerifier;

/** What Matrix.java needs of Californium 4, whose milestones come without TCP and OSCORE. */
class Version {
    static final boolean OSCORE = false;

    static Option option(int number, byte[] value) {
        OptionDefinition known = StandardOptionRegistry.getDefaultOptionRegistry().getDefinitionByNumber(number);
        OptionDefinition definition = known != null ? known : new OpaqueOption.Definition(number, "Option " + number);
        return definition.create(new DatagramReader(value), value.length);
    }

    static byte[] value(Option option) {
        DatagramWriter writer = new DatagramWriter();
        option.writeTo(writer);
        return writer.toByteArray();
    }

    static CoapEndpoint endpoint(InetSocketAddress address, String scheme, boolean server) {
        if (scheme.endsWith("+tcp")) System.exit(127);
        if (scheme.equals("coaps")) DtlsConfig.register();
        Configuration configuration = Matrix.configuration();
        CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(configuration);
        if (scheme.equals("coaps")) {
            DtlsConnectorConfig.Builder dtls = DtlsConnectorConfig.builder(configuration);
            String certificates = System.getenv("INTEROP_CERTIFICATES");
            String raw = System.getenv("INTEROP_RAW_KEYS");
            if (certificates != null) show(dtls, certificates);
            else if (raw != null) showRaw(dtls, raw);
            else {
                MultiPskStore keys = new MultiPskStore();
                byte[] key = "sesame-of-interop".getBytes(StandardCharsets.US_ASCII);
                keys.setKey("matrix", key);
                if (address != null && !server) keys.addKnownPeer(address, "matrix", key);
                dtls.setPskStore(keys);
            }
            dtls.setAddress(server ? address : new InetSocketAddress(0));
            dtls.set(DtlsConfig.DTLS_ROLE,
                server ? DtlsConfig.DtlsRole.SERVER_ONLY : DtlsConfig.DtlsRole.CLIENT_ONLY);
            // The length of its own connection IDs; without it, none are negotiated.
            String cid = System.getenv("INTEROP_CID");
            dtls.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, cid == null ? null : Integer.valueOf(cid));
            builder.setConnector(new DTLSConnector(dtls.build()));
        } else if (server) builder.setInetSocketAddress(address);
        return builder.build();
    }

    /** Its own key from a folder, which is the key of the others as well, without a certificate. */
    static void showRaw(DtlsConnectorConfig.Builder dtls, String folder) {
        try {
            SslContextUtil.Credentials own = SslContextUtil.loadCredentials(folder + "/peer.pem");
            PublicKey key = own.getCertificateChain()[0].getPublicKey();
            dtls.setCertificateIdentityProvider(new SingleCertificateProvider(own.getPrivateKey(), key));
            dtls.setCertificateVerifier(StaticCertificateVerifier.builder()
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
            dtls.setCertificateVerifier(StaticCertificateVerifier.builder()
                .setTrustedCertificates(SslContextUtil.loadTrustedCertificates(folder + "/authority.pem"))
                .build());
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }
}
