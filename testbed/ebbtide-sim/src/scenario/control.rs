//! The values of `--cc`: a congestion control over UDP, TCP, or Q-Block.

use super::error::ScenarioError;
use super::q_block::{NOTES, Q_BLOCK, QBlock};
use super::tcp::{DIFFERENCES, TCP, Tcp};
use super::{Scenario, did_you_mean};
use ebbtide_core::cc::{ConfigError, ControlConfig};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::Micros;
use ebbtide_core::wire::Block;

/// The transport of a client's messages.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A datagram each (RFC 7252).
    #[default]
    Udp,
    /// A byte stream (RFC 8323).
    Tcp,
}

/// The congestion control of a client, and with it the transport of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Over UDP, under this congestion control.
    Udp(ControlConfig),
    /// Over TCP (RFC 8323), whose congestion control is below CoAP.
    Tcp(Tcp),
    /// Over UDP, as the blocks of one body (RFC 9177).
    QBlock(QBlock),
}

impl Control {
    /// The NSTART that this control sets; `None` if the scenario's applies.
    pub const fn nstart(&self) -> Option<u16> {
        match self {
            Self::Udp(config) => config.settings.nstart,
            Self::Tcp(_) | Self::QBlock(_) => None,
        }
    }

    /// Notes for readers of its results.
    pub const fn notes(&self) -> &'static [&'static str] {
        match self {
            Self::Udp(_) => &[],
            Self::Tcp(_) => &DIFFERENCES,
            Self::QBlock(_) => &NOTES,
        }
    }

    /// The transport of the messages.
    pub const fn transport(&self) -> Transport {
        match self {
            Self::Udp(_) | Self::QBlock(_) => Transport::Udp,
            Self::Tcp(_) => Transport::Tcp,
        }
    }
}

impl From<ControlConfig> for Control {
    fn from(config: ControlConfig) -> Self {
        Self::Udp(config)
    }
}

impl Scenario {
    /// The control described by `text` (`NAME[:KEY=VALUE]...`), with this scenario's settings for
    /// it, which the text's own override.
    ///
    /// # Errors
    ///
    /// Returns an error if the name, a key or a value does not exist; the message lists the valid
    /// ones.
    pub fn control_config(&self, text: &str) -> Result<Control, ScenarioError> {
        if !self.class.is_empty() {
            // It is for the classes that have no control of their own.
            for class in self.classes().iter().filter(|class| class.control.is_none()) {
                class.scenario.control_config(text)?;
            }
            return self.parse_control(text);
        }
        let control = self.parse_control(text)?;
        if let Control::Udp(config) = &control {
            let params = Parameters {
                ack_timeout: Micros::from_u64(self.coap.ack_timeout.0 / 1000),
                ..Parameters::DEFAULT
            };
            let contradicts =
                |error: ConfigError<'_>| ScenarioError::argument("--cc", text, &error.to_string());
            config.check_bound("coap.ack_timeout", &params).map_err(contradicts)?;
        }
        if let Control::QBlock(_) = control {
            let most =
                (0..self.clients.count).filter_map(|client| self.workload.messages(client)).max();
            let fits = (1..=Block::MAX_NUM).contains(&most.unwrap_or(0));
            if !fits || self.network.mesh().is_some() {
                let message = "Q-Block carries the workload transfer, without a mesh, of up to \
                               1048575 messages a client";
                return Err(ScenarioError::argument("--cc", text, message));
            }
        }
        let is_plain_udp = matches!(control, Control::Udp(_));
        let power_cut = || (!self.power_cut.is_empty()).then_some("a power cut");
        if let Some(what) =
            self.workload.only_over_udp().or_else(power_cut).filter(|_| !is_plain_udp)
        {
            let message = format!("{what} needs a congestion control over UDP");
            return Err(ScenarioError::argument("--cc", text, &message));
        }
        if !self.security.is_none() && !is_plain_udp {
            let message = "security.mode is for congestion controls over UDP";
            return Err(ScenarioError::argument("--cc", text, message));
        }
        if control.transport() == Transport::Tcp {
            if self.network.lora().is_some() {
                let message =
                    "[network.lora] carries UDP only; choose a congestion control over UDP";
                return Err(ScenarioError::argument("--cc", text, message));
            }
            if self.network.mesh().is_some() {
                let message = "a mesh carries UDP only; choose a congestion control over UDP";
                return Err(ScenarioError::argument("--cc", text, message));
            }
            let room = self.network.room_for_tcp();
            room.map_err(|message| ScenarioError::argument("--cc", text, &message))?;
        }
        Ok(control)
    }

    /// Like [`Self::control_config`], but does not check whether the packets of this network are
    /// large enough.
    pub(super) fn parse_control(&self, text: &str) -> Result<Control, ScenarioError> {
        let fail = |message: &str| ScenarioError::argument("--cc", text, message);
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let own = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
        let scenarios = self.control.get(name).into_iter().flatten();
        let settings = scenarios.map(|(key, value)| (key.as_str(), value.as_str())).chain(own);
        if name == TCP {
            let mut tcp = Tcp::default();
            for (key, value) in settings {
                tcp.set(key, value).map_err(|message| fail(&message))?;
            }
            return Ok(Control::Tcp(tcp));
        }
        if name == Q_BLOCK {
            let mut blocks = QBlock::default();
            for (key, value) in settings {
                blocks.set(key, value).map_err(|message| fail(&message))?;
            }
            return Ok(Control::QBlock(blocks));
        }
        let wrong = |error: ConfigError<'_>| {
            let (wanted, known) = error.unknown();
            let hint = did_you_mean(wanted, known.iter().copied().chain(self.custom.names()));
            match error {
                ConfigError::Name { .. } => {
                    let custom: String =
                        self.custom.names().map(|name| format!(", {name}")).collect();
                    fail(&format!("{error}{custom}, {TCP} for CoAP over TCP, and {Q_BLOCK}{hint}"))
                }
                _ => fail(&format!("{error}{hint}")),
            }
        };
        let mut config = self.custom.parse(name).map_err(wrong)?;
        for (key, value) in settings {
            config.set(key, value).map_err(wrong)?;
            // `set` refuses such a key for built-in controls only.
            let (control, keys) = (config.selection.name(), config.selection.keys());
            if !keys.contains(&key) {
                return Err(wrong(ConfigError::Unused { key, control, keys }));
            }
        }
        Ok(Control::Udp(config))
    }
}
