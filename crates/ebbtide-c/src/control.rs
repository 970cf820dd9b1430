//! The control of one peer and its exchanges, with the limits that the core's shell has.

use crate::random::Drawn;
use ebbtide_core::cc::{
    Algorithm, CongestionControl, Context, Fasor, Kind, Marking, Outcome, Sample, Shell, Slot,
    Transmission,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::{Instant, Micros};

/// Why a call had no effect, except for `GaveUp`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    Null,
    Size,
    Range,
    Order,
    Busy,
    GaveUp,
    TooLarge,
    Refused,
    Protocol,
    Absent,
}

/// `ebbtide_settings`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct RfcSettings {
    /// ACK_TIMEOUT in milliseconds, 10 to 86400000.
    pub ack_timeout_ms: u32,
    /// MAX_RETRANSMIT, at most 20.
    pub max_retransmit: u8,
    /// NSTART, at least 1.
    pub nstart: u8,
}

impl RfcSettings {
    /// RFC 7252's (section 4.8).
    pub(crate) const DEFAULT: Self = Self { ack_timeout_ms: 2000, max_retransmit: 4, nstart: 1 };

    pub(crate) fn check(&self) -> Result<(), CallRefusal> {
        let ack_timeout = Micros::from_millis(self.ack_timeout_ms);
        let fits = (Shell::FLOOR..=Shell::CEILING).contains(&ack_timeout);
        match !fits || self.nstart == 0 || self.max_retransmit > 20 {
            true => Err(CallRefusal::Range),
            false => Ok(()),
        }
    }
}

/// `ebbtide_control`. All zeros are valid: a control that was not initialised.
#[repr(C)]
#[derive(Debug)]
pub struct PeerControl {
    magic: u8,
    nstart: u8,
    open: u8,
    max_retransmit: u8,
    ack_timeout: Micros,
    fasor: Fasor,
}

const _: () = assert!(size_of::<PeerControl>() == 28);
const _: () = assert!(size_of::<OpenExchange>() == 20);

/// The first byte of an initialised control.
const MAGIC: u8 = 0xeb;

/// `ebbtide_exchange`. All zeros are a new one.
#[repr(C)]
#[derive(Debug, Default)]
pub struct OpenExchange {
    slot: Slot,
    /// Since the first transmission, in milliseconds, until the last timeout expires.
    until_ms: u32,
    transmissions: u8,
    stage: u8,
    reserved: [u8; 2],
}

/// The stages of an exchange. Numbers and not an enum, since C may hold any of them.
const NEW: u8 = 0;
const WAITING: u8 = 1;
const EXPIRED: u8 = 2;
const MEASURED: u8 = 3;

impl Default for PeerControl {
    /// A control that is not initialised.
    fn default() -> Self {
        Self {
            magic: 0,
            nstart: 0,
            open: 0,
            max_retransmit: 0,
            ack_timeout: Micros::ZERO,
            fasor: Fasor::fast_slow_fast(Marking::None),
        }
    }
}

impl PeerControl {
    pub(crate) fn init(&mut self, settings: &RfcSettings) -> Result<(), CallRefusal> {
        settings.check()?;
        let ack_timeout = Micros::from_millis(settings.ack_timeout_ms);
        *self = Self {
            magic: MAGIC,
            nstart: settings.nstart,
            open: 0,
            max_retransmit: settings.max_retransmit,
            ack_timeout,
            fasor: Fasor::fast_slow_fast(Marking::None),
        };
        Ok(())
    }

    fn check(&self) -> Result<(), CallRefusal> {
        if self.magic == MAGIC { Ok(()) } else { Err(CallRefusal::Order) }
    }

    pub(crate) fn admit(&self) -> Result<(), CallRefusal> {
        self.check()?;
        // NSTART (RFC 7252 section 4.7).
        if self.open < self.nstart { Ok(()) } else { Err(CallRefusal::Busy) }
    }

    /// Calls the control with RFC 7252's parameters.
    fn with<R>(&mut self, random: u32, call: impl FnOnce(&mut Fasor, &mut Context<'_>) -> R) -> R {
        let params = Parameters {
            ack_timeout: self.ack_timeout,
            max_retransmit: self.max_retransmit,
            ..Parameters::DEFAULT
        };
        let settings = Algorithm::Fasor.settings();
        let mut rng = Drawn(random);
        let now = Instant::ZERO;
        let cx = &mut Context { now, params: &params, settings: &settings, rng: &mut rng };
        call(&mut self.fasor, cx)
    }

    pub(crate) fn on_transmit(
        &mut self,
        exchange: &mut OpenExchange,
        random: u32,
    ) -> Result<u32, CallRefusal> {
        match exchange.stage {
            NEW => {
                self.admit()?;
                *exchange = OpenExchange::default();
                self.open += 1;
            }
            EXPIRED => self.check()?,
            _ => return Err(CallRefusal::Order),
        }
        let ordinal = exchange.transmissions;
        let transmission = Transmission::new(Kind::Message, ordinal);
        let left = u16::from(self.max_retransmit.saturating_sub(ordinal));
        let since_first = Micros::from_millis(exchange.until_ms);
        let slot = &mut exchange.slot;
        let wait = self.with(random, |fasor, cx| {
            let timeout = fasor.on_transmit(&transmission, slot, cx);
            slot.armed = timeout.clamp(Shell::FLOOR, Shell::CEILING);
            // No exchange is given up sooner than under RFC 7252, however short the path is.
            Shell::wait(slot.armed, left, since_first, cx)
        });
        // Rounded up, and without the compiler's 64-bit division.
        let whole = wait.scale(1, 1000).as_micros();
        let wait_ms = whole + u64::from(whole * 1000 < wait.as_micros());
        let wait_ms = u32::try_from(wait_ms).unwrap_or(u32::MAX);
        exchange.until_ms = exchange.until_ms.saturating_add(wait_ms);
        exchange.transmissions = ordinal.saturating_add(1);
        exchange.stage = WAITING;
        Ok(wait_ms)
    }

    pub(crate) fn on_expire(&mut self, exchange: &mut OpenExchange) -> Result<(), CallRefusal> {
        self.check()?;
        if exchange.stage != WAITING {
            return Err(CallRefusal::Order);
        }
        exchange.stage = EXPIRED;
        // MAX_RETRANSMIT (RFC 7252 section 4.2).
        if exchange.transmissions > self.max_retransmit { Err(CallRefusal::GaveUp) } else { Ok(()) }
    }

    pub(crate) fn on_feedback(
        &mut self,
        exchange: &mut OpenExchange,
        since_first_ms: u32,
    ) -> Result<(), CallRefusal> {
        self.check()?;
        if !matches!(exchange.stage, WAITING | EXPIRED) {
            return Err(CallRefusal::Order);
        }
        exchange.stage = MEASURED;
        let since_first = Micros::from_millis(since_first_ms);
        // FASOR without marks does not ask for the time since the last one.
        let sample = Sample::new(since_first, since_first, exchange.transmissions);
        self.with(0, |fasor, cx| fasor.on_feedback(&exchange.slot, &sample, cx));
        Ok(())
    }

    pub(crate) fn on_close(
        &mut self,
        exchange: &mut OpenExchange,
        outcome: Outcome,
    ) -> Result<(), CallRefusal> {
        self.check()?;
        if exchange.stage == NEW || self.open == 0 {
            return Err(CallRefusal::Order);
        }
        self.open -= 1;
        let retransmissions = exchange.transmissions.saturating_sub(1);
        self.with(0, |fasor, cx| fasor.on_close(&exchange.slot, outcome, retransmissions, cx));
        *exchange = OpenExchange::default();
        Ok(())
    }
}
