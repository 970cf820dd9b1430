//! Observing a resource from the client's side (RFC 7641 section 3).

use super::Client;
use super::drive::Drive;
use super::pending::Pending;
use super::session::Session;
use crate::error::Error;
use crate::message::{Request, Response};
use crate::net::pending::Answer;
use ebbtide_core::Freshness;
use ebbtide_core::session::client::{Outgoing, Transfer};
use ebbtide_core::wire::OptionNumber;
use std::net::SocketAddr;
use std::time::Duration;

/// How long after Max-Age a notification is still hoped for (RFC 7641 section 3.3.1: registering
/// again is due when the last one is no longer fresh).
const PATIENCE: Duration = Duration::from_secs(15);
/// Max-Age where a response has none (RFC 7252 section 5.10.5).
const MAX_AGE: u32 = 60;

/// A resource that is being observed.
///
/// The state that it has now and each later one comes out of [`Self::next`]; states that others
/// overtook on the way do not. Without notifications it registers anew when the last state is no
/// longer fresh, and over a new connection when its own is lost. Dropping it ends it: the server
/// learns that from the Reset that its next notification gets, over a connection from a GET that
/// says so.
///
/// ```no_run
/// # async fn example() -> Result<(), ebbtide::Error> {
/// let client = ebbtide::Client::new()?;
/// let mut time = client.observe("coap://192.0.2.7/time").await?;
/// while let Some(state) = time.next().await {
///     println!("{}", state?.text());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Observation {
    client: Client,
    session: Session,
    request: Request,
    pending: Option<Pending>,
    freshness: Freshness,
    max_age: u32,
}

impl Observation {
    pub(super) fn new(client: Client, session: Session, request: Request) -> Result<Self, Error> {
        let mut observation = Self {
            client,
            session,
            request,
            pending: None,
            freshness: Freshness::default(),
            max_age: MAX_AGE,
        };
        observation.register()?;
        Ok(observation)
    }

    /// Who is asked.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.session.remote
    }

    fn register(&mut self) -> Result<(), Error> {
        let mut parts = self.request.parts();
        parts.options.push_uint(OptionNumber::OBSERVE, 0);
        self.freshness = Freshness::default();
        let (code, options, payload) = (parts.code, parts.options, parts.payload);
        let asked = Outgoing { id: 0, code, options, payload, q_block: false };
        self.pending = Some(self.session.start(&asked, self.request.reliability)?);
        Ok(())
    }

    /// Over a new connection, since the old one is lost.
    async fn register_anew(&mut self) -> Result<(), Error> {
        self.session = self.client.session(&self.request.uri).await?;
        self.register()
    }

    /// The next state. `None` when the server has ended the observation, or never began it: the
    /// state before was the last.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        loop {
            let pending = self.pending.as_ref()?;
            let fresh = Duration::from_secs(self.max_age.into()) + PATIENCE;
            match tokio::time::timeout(fresh, pending.answer()).await {
                Err(_) if pending.is_registered() => {
                    if let Err(error) = self.register() {
                        self.pending = None;
                        return Some(Err(error));
                    }
                }
                // Still being asked: the message layer decides when that fails.
                Err(_) => {}
                Ok(None) => {
                    self.pending = None;
                    return None;
                }
                Ok(Some(Answer::More { response, .. })) => {
                    let now = self.session.now();
                    let sequence = response.options.get_uint(OptionNumber::OBSERVE).unwrap_or(0);
                    // RFC 8323 section 7.1: over a connection they come in order, whatever their
                    // numbers say.
                    if self.session.link().is_some() || self.freshness.accept(now, sequence) {
                        return Some(self.whole(response).await);
                    }
                }
                Ok(Some(Answer::Response { response, .. })) => {
                    self.pending = None;
                    return Some(self.whole(response).await);
                }
                Ok(Some(other)) => {
                    let (error, registered) = (pending.error(other), pending.is_registered());
                    self.pending = None;
                    // Once: a server that ends every connection is not asked for ever.
                    if !error.is_lost_connection() || !registered {
                        return Some(Err(error));
                    }
                    if let Err(error) = self.register_anew().await {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// A notification with all its blocks.
    async fn whole(&mut self, first: Response) -> Result<Response, Error> {
        self.max_age = first.options.get_uint(OptionNumber::MAX_AGE).unwrap_or(MAX_AGE);
        let parts = self.request.parts();
        let settings = self.session.settings(&self.request, &parts);
        let transfer = Transfer::of_answer(self.session.now(), parts, settings, first);
        Drive::new(self.session.clone(), self.request.reliability, transfer).run().await
    }
}
