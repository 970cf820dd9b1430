//! The contents of signaling messages (RFC 8323 section 5).

use coap_numbers::signaling_option as registry;

use super::frame::Frame;
use super::number::OptionNumber;
use super::option::Opt;

/// Option numbers of signaling messages. They overlap with each other and with those of requests;
/// a number has a meaning only together with a code (RFC 8323 section 5.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SignalOption;

impl SignalOption {
    /// In a CSM: the bytes of the longest message that its sender accepts (section 5.3.1).
    pub const MAX_MESSAGE_SIZE: OptionNumber = OptionNumber(registry::MAX_MESSAGE_SIZE);
    /// In a CSM: its sender supports block-wise transfer (section 5.3.2).
    pub const BLOCK_WISE_TRANSFER: OptionNumber = OptionNumber(registry::BLOCK_WISE_TRANSFER);
    /// In a CSM: the bytes of the longest token that its sender accepts in requests (RFC 8974 section 2.2.1).
    pub const EXTENDED_TOKEN_LENGTH: OptionNumber = OptionNumber(6);
    /// In a Ping: the Pong is to follow once everything before the Ping is processed. In a Pong:
    /// it is processed (section 5.4.1).
    pub const CUSTODY: OptionNumber = OptionNumber(registry::CUSTODY);
    /// In a Release: an alternative address to connect to; repeatable (section 5.5).
    pub const ALTERNATIVE_ADDRESS: OptionNumber = OptionNumber(registry::ALTERNATIVE_ADDRESS);
    /// In a Release: seconds to wait before connecting again (section 5.5).
    pub const HOLD_OFF: OptionNumber = OptionNumber(registry::HOLD_OFF);
    /// In an Abort: the option of a CSM that was not understood (section 5.6).
    pub const BAD_CSM_OPTION: OptionNumber = OptionNumber(registry::BAD_CSM_OPTION);
}

/// The Max-Message-Size of a peer that has not announced another: 1152 bytes (RFC 8323 section
/// 5.3.1).
pub const BASE_MAX_MESSAGE_SIZE: u32 = 1152;

/// The changes in a CSM. An option that is missing changes nothing (RFC 8323 section 5.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Csm {
    /// Bytes of the longest message that the sender accepts, if the CSM states it.
    pub max_message_size: Option<u32>,
    /// Whether the sender announces support for block-wise transfer.
    pub block_wise_transfer: bool,
}

impl Csm {
    /// Reads the options of a CSM.
    #[must_use]
    pub fn read(message: &Frame<'_>) -> Self {
        Self {
            max_message_size: signal_option(message, SignalOption::MAX_MESSAGE_SIZE)
                .and_then(|opt| opt.as_uint()),
            block_wise_transfer: signal_option(message, SignalOption::BLOCK_WISE_TRANSFER)
                .is_some(),
        }
    }
}

/// A Release: its sender wants to end the connection cleanly (RFC 8323 section 5.5).
#[derive(Copy, Clone, Debug)]
pub struct Release<'a> {
    message: Frame<'a>,
}

impl<'a> Release<'a> {
    /// Reads a message whose code is 7.04.
    #[must_use]
    pub const fn new(message: Frame<'a>) -> Self {
        Self { message }
    }

    /// Alternative addresses to connect to, as host and port. Values that are not UTF-8 are
    /// skipped.
    pub fn alternative_addresses(&self) -> impl Iterator<Item = &'a str> {
        let options = self.message.options();
        options
            .filter(|opt| opt.number == SignalOption::ALTERNATIVE_ADDRESS)
            .filter_map(|opt| opt.as_str())
    }

    /// The number of seconds for which the sender asks not to be connected to again.
    #[must_use]
    pub fn hold_off(&self) -> Option<u32> {
        // Section 5.5: 0 to 3 bytes.
        let option = signal_option(&self.message, SignalOption::HOLD_OFF)?;
        option.as_uint().filter(|_| option.value.len() <= 3)
    }

    /// The human-readable diagnostic.
    #[must_use]
    pub const fn diagnostic(&self) -> &'a [u8] {
        self.message.payload()
    }
}

/// The first option of this number in a signaling message.
#[must_use]
pub fn signal_option<'a>(message: &Frame<'a>, number: OptionNumber) -> Option<Opt<'a>> {
    message.options().find(|opt| opt.number == number)
}

/// The first critical option of a signaling message. No critical option is defined, so none can be
/// understood, and "the receiver MUST abort the connection" (RFC 8323 section 5.2).
#[must_use]
pub fn critical_signal_option(message: &Frame<'_>) -> Option<OptionNumber> {
    message.options().map(|opt| opt.number).find(|number| number.is_critical())
}
