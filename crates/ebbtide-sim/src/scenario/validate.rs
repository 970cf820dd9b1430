//! Checks values that parse but are impossible. Each error names its key and the valid range.

use super::limits::{Check, LONGEST, LONGEST_SPAN, MAX_CLIENTS, range};
use super::{Errors, Scenario};

pub(super) fn check(s: &Scenario) -> Check {
    range(!s.name.is_empty(), "name", "must not be empty")?;
    if s.network.mesh.is_some() || s.workload.kind.is_mesh() {
        super::mesh_validate::check(s)?;
    }
    let n = s.client_count();
    let has_some = !s.class.is_empty() || (1..=MAX_CLIENTS).contains(&n);
    range(has_some, "clients.count", "must be from 1 to 1000000")?;
    range(s.clients.start_window <= LONGEST, "clients.start_window", "must be at most 36525 days")?;
    range(
        s.clients.processing.ends().1 <= LONGEST.0,
        "clients.processing",
        "must be at most 36525 days",
    )?;
    range(
        s.server.processing.ends().1 <= LONGEST.0,
        "server.processing",
        "must be at most 36525 days",
    )?;
    network(s)?;
    super::wifi::check(s)?;
    super::lora::check(s)?;
    super::background::check(s)?;
    super::traffic::workload(s)?;
    super::flow::check(s)?;
    super::traffic::check(s)?;
    super::security::check(s)?;
    super::class::check(s)?;
    super::link::check(s)?;
    super::cross::check(s)?;
    let c = &s.coap;
    let ack_timeout = (1_000_000..=LONGEST_SPAN.0).contains(&c.ack_timeout.0);
    range(ack_timeout, "coap.ack_timeout", "must be from 1 ms to a day (86400 s)")?;
    let factor = (1.0..=10.0).contains(&c.ack_random_factor);
    range(factor, "coap.ack_random_factor", "must be from 1 to 10")?;
    range(c.max_retransmit <= 254, "coap.max_retransmit", "must be from 0 to 254")?;
    range(c.nstart >= 1, "coap.nstart", "must be from 1 to 65535")?;
    range(c.token_length <= 7, "coap.token_length", "must be from 0 to 7")?;
    for (name, errors) in &s.errors {
        check_errors(name, errors)?;
    }
    for name in s.control.keys() {
        s.parse_control(name)
            .map_err(|error| (format!("control.{name}"), error.reason().to_owned()))?;
    }
    range((1..=100_000).contains(&s.run.reps), "run.reps", "must be from 1 to 100000")
}

fn network(s: &Scenario) -> Check {
    let n = &s.network;
    range(n.header <= 1000, "network.header", "must be from 0 to 1000 bytes")?;
    // A packet holds at least the four bytes of the CoAP header.
    range(
        n.mtu > n.header + 4 && n.mtu <= 65_535,
        "network.mtu",
        "must be above network.header plus the 4 bytes of a CoAP header, and at most 65535",
    )?;
    for (name, link) in [("up", &n.up), ("down", &n.down)] {
        if s.network.mesh.is_none() || !link.is_missing() {
            range(!link.is_missing(), &format!("network.{name}"), "is missing")?;
        }
        super::drops::check(s, name, link)?;
        super::queue::check(name, link)?;
        super::schedule::check(name, link)?;
        let longest = |ends: (u64, u64)| ends.1 <= LONGEST_SPAN.0;
        let key = |key: &str| format!("network.{name}.{key}");
        range(
            link.rate.0 <= 1_000_000_000_000,
            &key("rate"),
            "must be from 1 bit/s to 1000 Gbit/s",
        )?;
        range(longest(link.delay.ends()), &key("delay"), "must be at most a day (86400 s)")?;
        range(longest(link.beyond.ends()), &key("beyond"), "must be at most a day (86400 s)")?;
        if let Some(bytes) = link.buffer.0 {
            range(
                bytes >= u64::from(n.header) + 4,
                &key("buffer"),
                "must hold at least one packet (network.header plus 4 bytes), or be \"infinite\"",
            )?;
        }
    }
    if n.errors != "none" && !s.errors.contains_key(&n.errors) {
        let known: Vec<&str> =
            std::iter::once("none").chain(s.errors.keys().map(String::as_str)).collect();
        let message = format!("there is no [errors.{}]; there are {}", n.errors, known.join(", "));
        return Err(("network.errors".to_owned(), message));
    }
    Ok(())
}

fn check_errors(name: &str, errors: &Errors) -> Check {
    let key = |key: &str| format!("errors.{name}.{key}");
    let share = |value: f64| (0.0..=1.0).contains(&value);
    let (good, bad, average) = match *errors {
        Errors::Independent { average } => {
            return range(share(average), &key("average"), "must be from 0 to 1");
        }
        Errors::PerPacket { good, bad, average, mean_bad_packets } => {
            range(
                (1.0..=1e9).contains(&mean_bad_packets),
                &key("mean_bad_packets"),
                "must be from 1 to 1000000000",
            )?;
            (good, bad, average)
        }
        Errors::TimeDriven { good, bad, average, mean_bad } => {
            let stay = (1..=LONGEST.0).contains(&mean_bad.0);
            range(stay, &key("mean_bad"), "must be above zero and at most 36525 days")?;
            (good, bad, average)
        }
    };
    range(share(good), &key("good"), "must be from 0 to 1")?;
    range(share(bad) && good < bad, &key("bad"), "must be above good and at most 1")?;
    let between = good < average && average < bad;
    range(between, &key("average"), "must lie between good and bad")?;
    if let Errors::PerPacket { mean_bad_packets, .. } = *errors {
        let share = (average - good) / (bad - good);
        let most = mean_bad_packets * (1.0 - share) / share;
        range(
            most >= 1.0,
            &key("mean_bad_packets"),
            "is too short for this average: the good state would last less than a packet",
        )?;
    }
    Ok(())
}
