//! What signaling messages say about a connection (RFC 8323 section 5).

use coap_numbers::signaling_option as registry;

use super::frame::Frame;
use super::number::OptionNumber;
use super::option::Opt;

/// Numbers of options of signaling messages. They overlap with each other and with those of
/// requests: a number means something only together with a code (RFC 8323 section 5.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SignalOption;

impl SignalOption {
    /// Of a CSM: the most bytes of a message that its sender takes (section 5.3.1).
    pub const MAX_MESSAGE_SIZE: OptionNumber = OptionNumber(registry::MAX_MESSAGE_SIZE);
    /// Of a CSM: its sender knows block-wise transfer (section 5.3.2).
    pub const BLOCK_WISE_TRANSFER: OptionNumber = OptionNumber(registry::BLOCK_WISE_TRANSFER);
    /// Of Ping: the Pong is wanted after all that came before is processed. Of Pong: it is
    /// (section 5.4.1).
    pub const CUSTODY: OptionNumber = OptionNumber(registry::CUSTODY);
    /// Of Release: where else to connect; repeatable (section 5.5).
    pub const ALTERNATIVE_ADDRESS: OptionNumber = OptionNumber(registry::ALTERNATIVE_ADDRESS);
    /// Of Release: seconds to wait before connecting again (section 5.5).
    pub const HOLD_OFF: OptionNumber = OptionNumber(registry::HOLD_OFF);
    /// Of Abort: the option of a CSM that was not understood (section 5.6).
    pub const BAD_CSM_OPTION: OptionNumber = OptionNumber(registry::BAD_CSM_OPTION);
}

/// What a peer that said nothing else takes: 1152 bytes (RFC 8323 section 5.3.1).
pub const BASE_MAX_MESSAGE_SIZE: u32 = 1152;

/// What a CSM changes; an option that is missing changes nothing (RFC 8323 section 5.3).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Csm {
    /// The most bytes of a message that the sender takes, if it says.
    pub max_message_size: Option<u32>,
    /// Whether the sender says that it knows block-wise transfer.
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

/// A Release: its sender wants the connection to end, in good order (RFC 8323 section 5.5).
#[derive(Copy, Clone, Debug)]
pub struct Release<'a> {
    message: Frame<'a>,
}

impl<'a> Release<'a> {
    /// What a message of that code says.
    #[must_use]
    pub const fn new(message: Frame<'a>) -> Self {
        Self { message }
    }

    /// Where to connect instead, as host and port; those that are not UTF-8 left out.
    pub fn alternative_addresses(&self) -> impl Iterator<Item = &'a str> {
        let options = self.message.options();
        options
            .filter(|opt| opt.number == SignalOption::ALTERNATIVE_ADDRESS)
            .filter_map(|opt| opt.as_str())
    }

    /// For how many seconds the sender asks not to be connected to again.
    #[must_use]
    pub fn hold_off(&self) -> Option<u32> {
        // Section 5.5: 0 to 3 bytes.
        let option = signal_option(&self.message, SignalOption::HOLD_OFF)?;
        option.as_uint().filter(|_| option.value.len() <= 3)
    }

    /// The diagnostic, for people.
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

/// The first critical option of a signaling message. None is defined, so whichever there is cannot
/// be understood, and "the receiver MUST abort the connection" (RFC 8323 section 5.2).
#[must_use]
pub fn critical_signal_option(message: &Frame<'_>) -> Option<OptionNumber> {
    message.options().map(|opt| opt.number).find(|number| number.is_critical())
}
