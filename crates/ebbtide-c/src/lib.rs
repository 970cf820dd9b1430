//! CoAP in C: the congestion control alone (`include/ebbtide.h`), and an endpoint
//! (`include/ebbtide_endpoint.h`). Tests compare the headers with the functions.
#![no_std]
#![expect(
    unsafe_code,
    reason = "C finds functions by their names, which no_mangle must promise to be unique, and passes pointers"
)]

#[cfg(not(target_os = "none"))]
extern crate std;

mod control;
mod endpoint;
mod random;
#[cfg(test)]
mod tests;

pub use control::{OpenExchange, PeerControl, RfcSettings};
pub use endpoint::*;

use control::CallRefusal;
use core::ffi::c_int;
use ebbtide_core::cc::Outcome;

/// `EBBTIDE_OK`.
const OK: c_int = 0;

impl CallRefusal {
    /// The code of this refusal in C.
    pub(crate) const fn code(self) -> c_int {
        match self {
            Self::Null => -1,
            Self::Size => -2,
            Self::Range => -3,
            Self::Order => -4,
            Self::Busy => -5,
            Self::GaveUp => -6,
            Self::TooLarge => -7,
            Self::Refused => -8,
            Self::Protocol => -9,
            Self::Absent => -10,
        }
    }
}

fn code(result: Result<(), CallRefusal>) -> c_int {
    result.map_or_else(CallRefusal::code, |()| OK)
}

/// `ebbtide_init`.
#[unsafe(no_mangle)]
pub extern "C" fn ebbtide_init(
    control: Option<&mut PeerControl>,
    size: usize,
    settings: Option<&RfcSettings>,
) -> c_int {
    let Some(control) = control else { return CallRefusal::Null.code() };
    if size != size_of::<PeerControl>() {
        return CallRefusal::Size.code();
    }
    code(control.init(settings.unwrap_or(&RfcSettings::DEFAULT)))
}

/// `ebbtide_admit`.
#[unsafe(no_mangle)]
pub extern "C" fn ebbtide_admit(control: Option<&PeerControl>) -> c_int {
    let Some(control) = control else { return CallRefusal::Null.code() };
    code(control.admit())
}

/// `ebbtide_on_transmit`.
#[unsafe(no_mangle)]
pub extern "C" fn ebbtide_on_transmit(
    control: Option<&mut PeerControl>,
    exchange: Option<&mut OpenExchange>,
    random: u32,
    timeout_ms: Option<&mut u32>,
) -> c_int {
    let (Some(control), Some(exchange), Some(timeout)) = (control, exchange, timeout_ms) else {
        return CallRefusal::Null.code();
    };
    code(control.on_transmit(exchange, random).map(|wait| *timeout = wait))
}

/// `ebbtide_on_expire`.
#[unsafe(no_mangle)]
pub extern "C" fn ebbtide_on_expire(
    control: Option<&mut PeerControl>,
    exchange: Option<&mut OpenExchange>,
) -> c_int {
    let (Some(control), Some(exchange)) = (control, exchange) else {
        return CallRefusal::Null.code();
    };
    code(control.on_expire(exchange))
}

/// `ebbtide_on_feedback`.
#[unsafe(no_mangle)]
pub extern "C" fn ebbtide_on_feedback(
    control: Option<&mut PeerControl>,
    exchange: Option<&mut OpenExchange>,
    since_first_ms: u32,
) -> c_int {
    let (Some(control), Some(exchange)) = (control, exchange) else {
        return CallRefusal::Null.code();
    };
    code(control.on_feedback(exchange, since_first_ms))
}

/// `ebbtide_on_close`.
#[unsafe(no_mangle)]
pub extern "C" fn ebbtide_on_close(
    control: Option<&mut PeerControl>,
    exchange: Option<&mut OpenExchange>,
    outcome: c_int,
) -> c_int {
    let (Some(control), Some(exchange)) = (control, exchange) else {
        return CallRefusal::Null.code();
    };
    let outcome = match outcome {
        0 => Outcome::Acknowledged,
        1 => Outcome::GaveUp,
        2 => Outcome::Cancelled,
        _ => return CallRefusal::Range.code(),
    };
    code(control.on_close(exchange, outcome))
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
