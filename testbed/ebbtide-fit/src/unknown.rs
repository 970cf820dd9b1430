//! The limits of a capture, in sentences.

use super::devices::{ClientCount, ClientsBy};
use super::figures::{BufferRoom, FittedNetwork, MeasuredCapture, given_up, has_bound};
use super::path::FittedPath;
use super::taken_at::TakenAt;
use super::wording::{rate, time};

/// Answers that come sooner, without transmission, come at once, ns.
const AT_ONCE_NS: f64 = 1e6;

/// A sentence for each thing that is not known.
pub(super) fn unknown(measured: &MeasuredCapture<'_>, network: &FittedNetwork) -> Vec<String> {
    let parts = [
        about_place(measured),
        about_path(measured, network),
        about_links(network),
        about_traffic(measured),
        about_capture(measured),
        about_clients(measured),
    ];
    parts.into_iter().flatten().collect()
}

/// Where the capture was taken, and by which clocks.
fn about_place(measured: &MeasuredCapture<'_>) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    if !measured.sides.is_place_certain {
        say(format!(
            "Where the capture was taken is a guess from the times: {}. --taken-at says it.",
            measured.taken_at.name()
        ));
    }
    if let Some(nanos) = measured.sides.clocks_differ_ns {
        say(format!(
            "The clocks of the interfaces differ by about {}; only the packets at one of them were used: {}.",
            time(nanos as f64 / 1e9),
            measured.taken_at.name()
        ));
    }
    list
}

/// Delays and losses.
fn about_path(measured: &MeasuredCapture<'_>, network: &FittedNetwork) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    match measured.path {
        FittedPath::Both(legs) => {
            if !network.is_suited {
                say("The times do not suit one link with a constant rate (differing clocks, several links, \
                     LoRaWAN or Wi-Fi): the figures of the network are not known, and those of the scenario are \
                     the nearest that one link has."
                    .to_owned());
            } else if legs.iter().any(|leg| leg.delay.2 <= 0.0) {
                say("The clocks of the two places differ: only the sum of the two delays is known, and counts."
                    .to_owned());
            }
        }
        FittedPath::RoundTrip(leg) | FittedPath::ReturnTrip(leg) => {
            if measured.taken_at == TakenAt::Clients && leg.delay.1 < AT_ONCE_NS {
                say("Answers follow their requests at once: this capture is from next to the server \
                     (--taken-at server), or the network has hardly any delay."
                    .to_owned());
            }
            say("Delays and losses of the two directions cannot be told apart from one place; they are divided \
                 evenly, and one buffer size is assumed for both."
                .to_owned());
            say("Which direction is the bottleneck does not show where packets have one size; it is taken to be the \
                 one with the longer packets."
                .to_owned());
            say("The server's processing time is part of the delay.".to_owned());
        }
        FittedPath::Unknown => {
            say("Nothing shows the network next to a server whose clients send by the clock: the delay is \
                 set to 0 and the rate to that of the traffic. Capture next to the clients."
                .to_owned());
        }
    }
    if matches!(measured.path, FittedPath::ReturnTrip(_)) {
        say("Losses cannot be seen next to the server: packets that were lost on the way there were not \
             captured."
            .to_owned());
    }
    list
}

/// Rates and buffers.
fn about_links(network: &FittedNetwork) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    let directions = [("up", &network.up), ("down", &network.down)];
    for (name, direction) in directions.into_iter().filter(|_| network.is_suited) {
        let (low, high) = direction.rates;
        if !direction.is_rate_known && high.is_finite() {
            let (low, high) = (rate(low), rate(high));
            say(format!(
                "The rate of network.{name} is between {low} and {high}: few packets queued there."
            ));
        } else if !direction.is_rate_known && !has_bound(low) {
            say(format!("The rate of network.{name} does not show: packets did not queue there."));
        } else if !direction.is_rate_known {
            let low = rate(low);
            say(format!(
                "The rate of network.{name} is at least {low}: packets hardly queued there."
            ));
        }
        if let BufferRoom::AtLeast(most) = direction.room
            && !has_bound(most)
        {
            say(format!(
                "The buffer of network.{name} does not show: nothing queued there. The scenario has none that fills \
                 up."
            ));
        } else if let BufferRoom::AtLeast(most) = direction.room {
            say(format!(
                "The buffer of network.{name} is at least {most:.0} bytes: no queue was full. The scenario has \
                 none that fills up."
            ));
        }
    }
    list
}

/// Messages, paths and hosts.
fn about_traffic(measured: &MeasuredCapture<'_>) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    let ClientCount { addresses, ports, by, is_guess } = measured.clients;
    if addresses != ports {
        say(match (by, is_guess) {
            (ClientsBy::Address, true) => format!(
                "{ports} ports of {addresses} addresses open one exchange each, one after another: each address counts \
                 as a client. --clients-by port counts ports."
            ),
            (ClientsBy::Address, false) => format!(
                "Each of {addresses} addresses counts as a client, whichever of {ports} ports it uses."
            ),
            (ClientsBy::Port, _) => format!(
                "Each of {ports} ports at {addresses} addresses counts as a client. --clients-by address counts \
                 addresses."
            ),
        });
    }
    let sizes = measured.sizes;
    let sizes_of = [
        ("requests have", sizes.payload, "bytes of payload"),
        ("responses have", sizes.response, "bytes after the token"),
    ];
    for (what, (_, least, most), unit) in sizes_of {
        if least != most {
            say(format!("Sizes vary: {what} {least} to {most} {unit}. The scenario has the mean."));
        }
    }
    if sizes.paths > 1 {
        say(format!("There are {} paths; the scenario has one of the mean length.", sizes.paths));
    }
    if measured.sides.servers > 1 {
        say(format!(
            "There are {} hosts on the server's side; the scenario has one.",
            measured.sides.servers
        ));
    }
    if measured.taken_at == TakenAt::Server && !measured.sides.is_from_server {
        say("How many exchanges a client keeps open does not show next to the server.".to_owned());
    }
    list
}

/// Packets that were not used.
fn about_capture(measured: &MeasuredCapture<'_>) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    let contents = measured.contents;
    let (packets, bytes) = contents.others;
    if packets > 0 {
        say(format!(
            "{packets} packets ({bytes} bytes) hold no CoAP over UDP; if they share the link, they take a part of it \
             that the scenario does not have."
        ));
    }
    if contents.twice > 0 {
        say(format!(
            "{} packets appear twice and were counted once; capture one interface.",
            contents.twice
        ));
    }
    if contents.dtls > 0 {
        say(format!(
            "{} packets are DTLS records of {} devices, which fit cannot read.",
            contents.dtls,
            contents.dtls_devices.len()
        ));
    }
    if contents.fragments > 0 {
        say(format!("{} IP fragments were left out.", contents.fragments));
    }
    if contents.cut_packets > 0 {
        say(format!(
            "{} packets at the port were captured in part, and too little of them; capture whole packets (tcpdump -s 0).",
            contents.cut_packets
        ));
    }
    if contents.is_cut {
        say("The capture ends in the middle of a packet; what comes before was used.".to_owned());
    }
    list
}

/// Settings of the clients' endpoints.
fn about_clients(measured: &MeasuredCapture<'_>) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    if given_up(measured).is_none() {
        say("MAX_RETRANSMIT does not show, since no request was given up.".to_owned());
    }
    say("ACK_TIMEOUT and the clients' congestion control do not show; coap.ack_timeout is RFC 7252's default."
        .to_owned());
    list
}
