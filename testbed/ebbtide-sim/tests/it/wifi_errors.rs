//! Wi-Fi cells that cannot be: an error that names the key and the remedy.

use ebbtide_sim::scenario::{Override, load};

#[track_caller]
fn assert_refused(settings: &[(&str, &str)], parts: &[&str]) {
    let changes: Vec<Override> = settings
        .iter()
        .map(|(key, value)| Override { key: (*key).to_owned(), value: (*value).to_owned() })
        .collect();
    let message = load("rcoap-wifi").unwrap().scenario(&changes).unwrap_err().to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn impossible_places_and_shares_are_named_with_what_would_be_right() {
    assert_refused(&[("network.wifi.distance", "0")], &["distance", "above 0 m"]);
    assert_refused(&[("network.wifi.range", "9")], &["range", "at least network.wifi.distance"]);
    assert_refused(&[("network.wifi.frame_loss", "1.0")], &["frame_loss", "0 to below 1"]);
    assert_refused(&[("network.wifi.queue", "0")], &["queue", "from 1 to 100000"]);
    assert_refused(&[("clients", "1000")], &["at most 999", "network.wifi"]);
    assert_refused(&[("network.mtu", "2400")], &["network.mtu", "2312"]);
    assert_refused(&[("network.wifi.speed", "3")], &["unknown field", "distance"]);
}

#[test]
fn impossible_parameters_of_the_mac_are_named_with_their_range() {
    let dcf = |key: &str, value: &str, parts: &[&str]| {
        assert_refused(&[(&format!("network.wifi.dcf.{key}"), value)], parts);
    };
    dcf("data_rate", "54 Mbit/s", &["data_rate", "1 Mbit/s to 11 Mbit/s"]);
    dcf("basic_rate", "500 kbit/s", &["basic_rate", "1 Mbit/s to 11 Mbit/s"]);
    dcf("slot", "0 us", &["dcf.slot", "1 us to 1 ms"]);
    dcf("cw_min", "30", &["cw_min", "one less than a power of two"]);
    dcf("cw_min", "2047", &["cw_min", "at most network.wifi.dcf.cw_max"]);
    dcf("cw_max", "65535", &["cw_max", "0 to 32767"]);
    dcf("retry_limit", "0", &["retry_limit", "1 to 255"]);
    dcf("mac_header", "101", &["mac_header", "0 to 100 bytes"]);
}
