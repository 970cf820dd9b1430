import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.stack.RemoteEndpoint;
import org.eclipse.californium.core.network.stack.RemoteEndpoint.RtoType;
import org.eclipse.californium.core.network.stack.congestioncontrol.BasicRto;
import org.eclipse.californium.core.network.stack.congestioncontrol.Cocoa;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.util.ClockUtil;

/**
 * The RTO of Californium's controls over one series of round trips: a line for each exchange with its control, the idle
 * time before it and its round trip in milliseconds, its retransmissions, and the RTO of the exchange after it.
 */
public final class ControlSeries {
    private static final class Strong extends Cocoa {
        Strong(Configuration config) {
            super("", config, true);
        }

        RemoteEndpoint endpoint() {
            return createRemoteEndpoint("peer");
        }
    }

    private static final class Basic extends BasicRto {
        Basic(Configuration config) {
            super("", config);
        }

        RemoteEndpoint endpoint() {
            return createRemoteEndpoint("peer");
        }
    }

    public static void main(String[] args) {
        CoapConfig.register();
        Configuration config = new Configuration();
        AtomicLong nanos = new AtomicLong(1_000_000_000_000L);
        ClockUtil.setRealtimeHandler(nanos::get);
        print("cocoa-strong", new Strong(config).endpoint(), nanos);
        print("basic-rto", new Basic(config).endpoint(), nanos);
    }

    private static void print(String name, RemoteEndpoint endpoint, AtomicLong nanos) {
        // xorshift, as the test has no need of it: it reads this program's lines.
        long state = 88172645463325252L;
        for (int i = 0; i < 120; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            int draw = (int) (state >>> 33);
            long idle = draw % 5 == 0 ? draw % 40_000 : draw % 3_000;
            long roundTrip = 20 + (i / 20 % 2 == 0 ? draw % 900 : draw % 9_000);
            int retransmissions = draw % 7 < 5 ? 0 : draw % 7 - 4;
            nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(idle));
            endpoint.checkAging();
            nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(roundTrip));
            endpoint.processRttMeasurement(retransmissions == 0 ? RtoType.STRONG : RtoType.WEAK, roundTrip);
            System.out.printf("%s %d %d %d %d%n", name, idle, roundTrip, retransmissions, endpoint.getRTO());
        }
    }
}
