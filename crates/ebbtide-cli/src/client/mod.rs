//! The common parts of the commands that speak CoAP.

mod diagnostic;
pub(crate) mod diagnostic_input;
mod edhoc;
pub(crate) mod exec;
pub(crate) mod flow;
pub(crate) mod interrupt;
pub(crate) mod load;
pub(crate) mod load_async;
pub(crate) mod load_stream;
pub(crate) mod oscore;
pub(crate) mod pretty;
mod private_file;
pub(crate) mod psk;
mod secret_file;
pub(crate) mod tls;
pub(crate) mod verbose;

use crate::failure::Failure;
use clap::Args;
use ebbtide::congestion::{ConfigError, ControlConfig, Parameters};
use ebbtide::server::interface_index;
use ebbtide::{Client, ClientConfig, ErrorKind, Scheme, Uri};
use ebbtide_sim::scenario::{Q_BLOCK, TCP, did_you_mean};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

impl From<ebbtide::Error> for Failure {
    fn from(error: ebbtide::Error) -> Self {
        match error.kind() {
            ErrorKind::Uri => Self::usage(format_args!("URI: {error}")),
            _ => Self::work(error),
        }
    }
}

impl From<ebbtide::UriError> for Failure {
    fn from(error: ebbtide::UriError) -> Self {
        Self::usage(format_args!("URI: {error}"))
    }
}

/// How long to wait for the members of a group: DEFAULT_LEISURE and a round trip.
pub(crate) const GROUP_WAIT: Duration = Duration::from_secs(7);

/// The options of a CoAP client.
#[derive(Args, Debug, Clone)]
pub(crate) struct TalkArgs {
    /// Congestion control, with settings as in `cocoa:nstart=4`; `ebbtide list` names them. By
    /// default ebb
    #[arg(long, value_name = "NAME")]
    pub(crate) cc: Option<String>,
    /// Send Non-confirmable messages: once, without acknowledgement
    #[arg(short = 'N', long)]
    pub(crate) non: bool,
    /// Confirmable exchanges open at once to one peer (NSTART)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) nstart: Option<u16>,
    /// Give up after this many seconds, retransmissions and all blocks included
    #[arg(short = 'B', long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Leave from this address, and port if there is one: that of an interface, or one that a firewall knows
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = local_address)]
    pub(crate) from: Option<SocketAddr>,
    /// Leave by this interface, also to groups for which there is no route (Linux)
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Show messages, timeouts and congestion control's measurements on standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) tls: tls::TlsArgs,
    #[command(flatten)]
    pub(crate) oscore: oscore::OscoreArgs,
}

impl TalkArgs {
    /// The library's configuration for these options.
    pub(crate) fn config(&self) -> Result<ClientConfig, Failure> {
        if self.verbose {
            verbose::start();
        }
        let mut config = match &self.cc {
            Some(name) => ClientConfig::new().control(control(name)?),
            None => ClientConfig::new(),
        };
        if let Some(nstart) = self.nstart {
            config = config.nstart(nstart);
        }
        if let Some(from) = self.from {
            config = config.local_address(from);
        }
        if let Some(name) = &self.interface {
            let index = interface_index(name)
                .map_err(|error| Failure::usage(format_args!("--interface: {error}")))?;
            config = config.transport(|all| all.interface(name).multicast_interface(index));
        }
        if let Some(contexts) = self.oscore.contexts()? {
            config = config.oscore(contexts);
        }
        if let Some(credentials) = self.oscore.credentials()? {
            config = config.edhoc(credentials);
        }
        self.tls.apply(config)
    }

    /// Creates a client with these settings for requests to `uri`. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is wrong, or promises security that the URI's scheme does not have.
    pub(crate) fn client(&self, uri: &Uri) -> Result<Client, Failure> {
        self.tls.check_scheme(uri.scheme())?;
        let datagrams = matches!(uri.scheme(), Scheme::Coap | Scheme::Coaps);
        if !datagrams && (self.from.is_some() || self.interface.is_some()) {
            let scheme = uri.scheme().name();
            return Err(Failure::usage(format_args!(
                "--from and --interface concern coap and coaps, not {scheme}: its connections leave as the system decides"
            )));
        }
        Ok(Client::with_config(self.config()?))
    }
}

/// The congestion control described by `--cc`.
pub(crate) fn control(text: &str) -> Result<ControlConfig, Failure> {
    let instead = match text.split(':').next() {
        Some(TCP) => Some("name a coap+tcp:// URI for CoAP over TCP"),
        Some(Q_BLOCK) => Some("use -Q (--q-block) of get, put and post"),
        _ => None,
    };
    if let Some(instead) = instead {
        return Err(Failure::usage(format_args!("--cc {text}: in scenarios only; {instead}")));
    }
    let wrong = |error: ConfigError<'_>| {
        let (wanted, known) = error.unknown();
        let hint = did_you_mean(wanted, known.iter().copied());
        Failure::usage(format_args!("--cc {text}: {error}{hint}"))
    };
    let control = ControlConfig::parse(text).map_err(wrong)?;
    control.check_bound("ACK_TIMEOUT", &Parameters::DEFAULT).map_err(wrong)?;
    Ok(control)
}

/// An address with or without a port.
fn local_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    let wrong = |_| {
        format!(
            "'{text}' is not an address such as 192.0.2.7, 192.0.2.7:5683 or [2001:db8::7]:5683"
        )
    };
    address.or_else(|_| text.parse()).map_err(wrong)
}

/// A positive number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a number of seconds above 0");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
    } else {
        Err(wrong())
    }
}

/// Runs `work` on a runtime of one thread.
pub(crate) fn block_on<R>(work: impl Future<Output = Result<R, Failure>>) -> Result<R, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| Failure::work(format_args!("cannot create an event loop: {error}")))?
        .block_on(work)
}
