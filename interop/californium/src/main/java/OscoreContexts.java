import java.util.HexFormat;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.cose.AlgorithmID;
import org.eclipse.californium.elements.util.Bytes;
import org.eclipse.californium.oscore.CoapOSException;
import org.eclipse.californium.oscore.HashMapCtxDB;
import org.eclipse.californium.oscore.OSCoreCoapStackFactory;
import org.eclipse.californium.oscore.OSCoreCtx;
import org.eclipse.californium.oscore.OSCoreCtxDB;
import org.eclipse.californium.oscore.OSException;

/** The OSCORE contexts of the matrix and of the OSCORE interop test specification: they have the same secret and salt. */
class OscoreContexts {
    private static final byte[] SECRET = HexFormat.of().parseHex("0102030405060708090a0b0c0d0e0f10");
    private static final byte[] SALT = HexFormat.of().parseHex("9e7ca92223786340");

    /** The IDs of the test specification. */
    static final byte[] CLIENT = {}, SERVER = {1}, ID_CONTEXT = HexFormat.of().parseHex("37cbf3210017a2d3");

    static OSCoreCtx context(byte[] sender, byte[] recipient, byte[] idContext) {
        try {
            // Whether it is the client's only selects IDs where they are null.
            OSCoreCtx context = new OSCoreCtx(SECRET, true, AlgorithmID.AES_CCM_16_64_128, sender, recipient,
                AlgorithmID.HKDF_HMAC_SHA_256, 32, SALT, idContext, 65_536);
            if (idContext != null) context.setIncludeContextId(true);
            return context;
        } catch (OSException error) {
            throw new IllegalArgumentException(error);
        }
    }

    static CoapEndpoint.Builder endpoint(CoapEndpoint.Builder builder, OSCoreCtxDB contexts) {
        return builder.setCoapStackFactory(new OSCoreCoapStackFactory()).setCustomCoapStackArgument(contexts);
    }

    /**
     * Contexts of which one has no ID Context: a request without kid context is protected with that one. HashMapCtxDB
     * refuses such a request if another context has the same kid.
     */
    static class Named extends HashMapCtxDB {
        @Override public synchronized OSCoreCtx getContext(byte[] kid, byte[] idContext) throws CoapOSException {
            return super.getContext(kid, idContext == null ? Bytes.EMPTY : idContext);
        }
    }
}
