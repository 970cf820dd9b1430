//! Settings for studies and load generators.

use super::AllSettings;
use super::setters::setters;
use ebbtide_core::endpoint::EndpointConfig;
use ebbtide_core::wire::OptionNumber;
use std::time::Duration;

/// Settings for studies and load generators, which applications do not need. They may change in any version.
#[derive(Clone, Debug)]
#[must_use]
pub struct Research(pub(super) AllSettings);

setters! {
    Research {
        /// Sets whether a message is given up no sooner than MAX_TRANSMIT_SPAN after its first transmission,
        /// whatever the congestion control decides. Default true; only a study that compares controls as they
        /// were published switches it off.
        patience(yes: bool) => endpoint.study.patience = yes;

        /// Sets whether to trust that every peer answers each copy of a request with that copy's own
        /// token and options, as Ebbtide does. Otherwise the marks of a peer are trusted only once it
        /// has shown this. Default false.
        trust_marks(yes: bool) => endpoint.study.trusts_marks = yes;

        /// Sets the number of the option Rexmit-Cnt, for which no number is assigned. Default 65020, from the
        /// experimental range.
        rexmit_count_option(number: OptionNumber) => endpoint.rexmit_count_option = number;

        /// Sets whether message IDs are kept unique for EXCHANGE_LIFETIME (RFC 7252 section 4.4). Default true;
        /// only a load generator, which measures a server and not a network, may switch this off.
        unique_message_ids(yes: bool) => endpoint.study.unique_message_ids = yes;

        /// Sets whether messages, round trips and timeouts are counted under each congestion control, which
        /// takes 440 bytes for each. Default true.
        count_per_control(yes: bool) => endpoint.count_per_control = yes;

        /// Sets how long a socket keeps polling for datagrams after the last ones before it sleeps. Polling saves
        /// the time of a wake-up, which on a virtual machine is most of a short round trip, and keeps a core busy.
        /// Default zero.
        busy_poll(span: Duration) => busy_poll = span;

        /// Replaces all settings of the core's [endpoint](ebbtide_core::endpoint), as a testbed has them.
        endpoint(endpoint: EndpointConfig) => endpoint = endpoint;
    }
}
