//! RCOAP21: senders of many messages in a Wi-Fi cell behind a bottleneck.

mod cells;
mod compare;
mod pages;
mod rates;
mod statements;

pub(super) use cells::cells;
pub(super) use compare::compare;
pub(super) use pages::pages;
pub(super) use statements::check as statements;
