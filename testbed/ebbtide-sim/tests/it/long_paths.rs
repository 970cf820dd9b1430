//! Paths from 10 ms to an hour on which nothing is lost and nothing waits.

use crate::common::{run, scenario};
use ebbtide_core::cc::Algorithm;

/// A round trip of the idle path, and a first timeout above it.
const PATHS: [(&str, &str, &str); 6] = [
    ("5 ms", "10 ms", "20 ms"),
    ("500 ms", "1 s", "2 s"),
    ("5 s", "10 s", "15 s"),
    ("50 s", "100 s", "130 s"),
    ("500 s", "1000 s", "1200 s"),
    ("30 min", "1 h", "4500 s"),
];

#[test]
fn nothing_is_sent_twice_on_an_idle_path_shorter_than_the_first_timeout() {
    for (one_way, round_trip, first) in PATHS {
        for algorithm in Algorithm::ALL {
            let path = [
                ("delay", one_way),
                ("network.up.rate", "10 Mbit/s"),
                ("network.down.rate", "10 Mbit/s"),
                ("errors", "none"),
                ("ack_timeout", first),
                ("clients", "2"),
            ];
            let scenario = scenario("mars", &path);
            if matches!(algorithm, Algorithm::Nyoci) {
                continue; // It sends three copies at once, whatever the path.
            }
            // Those with a first timeout of their own.
            let first = first.replace(' ', "");
            let cc = match algorithm {
                Algorithm::DefaultB => format!("{algorithm}:ack-timeout={first}"),
                Algorithm::Rfc6298 => format!("{algorithm}:initial-rto={first}"),
                Algorithm::EcoapRpl => format!("{algorithm}:min={first}:max={first}"),
                _ => algorithm.to_string(),
            };
            let record = run(&scenario, &cc, 1, 0);
            for client in &record.clients {
                assert_eq!(client.completed, 8, "{cc}, round trip {round_trip}: {client:?}");
                assert_eq!(client.needless, 0, "{cc}, round trip {round_trip}: {client:?}");
            }
        }
    }
}
