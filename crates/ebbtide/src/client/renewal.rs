//! New keys of OSCORE in place of a state that was lost (RFC 8613 appendix B.2): one exchange before the first request.

use super::session::Session;
use crate::error::{Cause, Error, OscoreFailure};
use crate::message::Uri;
use crate::net::clock::secret_bytes;
use crate::net::pending::Answer;
use crate::oscore::{ClientContext, OscoreContexts};
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::oscore::PeerId;
use ebbtide_core::session::client::Outgoing;
use ebbtide_core::wire::Code;

impl Session {
    /// The context for the requests to a server, with which keys are to be made.
    pub(super) async fn renew(
        &self,
        contexts: &OscoreContexts,
        peer: PeerId,
        uri: &Uri,
    ) -> Result<ClientContext, Error> {
        let _turn = contexts.renewal_turn(peer).await;
        if let Some(context) = contexts.for_server(uri) {
            return Ok(context);
        }
        let failed = |why: &'static str| {
            let reason = OscoreFailure::Renewal(why.into());
            Error::for_peer(self.address, Cause::Oscore(reason))
        };
        let drawn = || secret_bytes().ok_or_else(|| failed("the system provides no randomness"));
        let begun = contexts.begin_renewal(peer, drawn()?);
        let begun = begun.ok_or_else(|| failed("the context cannot be derived"))?;
        let (options, payload) = (begun.options.clone(), begun.payload.clone().into());
        let outgoing = Outgoing { id: 0, code: Code::POST, options, payload, q_block: false };
        let pending = self.start_when_room(&outgoing, Reliability::Confirmable).await?;
        match pending.answer().await {
            Some(Answer::Response { response, .. }) => {
                let made = contexts.finish_renewal(&begun, &response, drawn()?);
                made.ok_or_else(|| match response.is_success() {
                    true => failed("the server's answer is not authentic"),
                    false => {
                        let (code, diagnostic) = (response.code(), response.text().into());
                        let reason = OscoreFailure::Refused { code, diagnostic };
                        Error::for_peer(self.address, Cause::Oscore(reason))
                    }
                })
            }
            Some(other) => Err(pending.error(other)),
            None => Err(Cause::Closed.into()),
        }
    }
}
