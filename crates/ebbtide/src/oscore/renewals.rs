//! Contexts whose keys are made anew with the peer at each start (RFC 8613 appendix B.2).

use super::{
    ClientContext, NumberStore, OscoreContext, OscoreContexts, Unopened, VerifiedRequest,
    with_buffer,
};
use crate::message::{Options, Response, Uri};
use ebbtide_core::oscore::renewal::{self, ANSWERED, AnswerKey, DRAWN, Renewed};
use ebbtide_core::oscore::{
    ContextId, MAX_CONTEXT_ID, OscoreOption, PeerId, Refusal, RequestNumber, SecurityContext,
};
use ebbtide_core::session::SecuredRequest;
use ebbtide_core::wire::{Code, Content, Message, OptionNumber};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// The form in which a peer sends an ID Context.
#[derive(Copy, Clone)]
enum IdContextForm {
    /// A byte string of CBOR.
    Encoded,
    /// As it is.
    Raw,
}

impl IdContextForm {
    fn read(self, sent: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Encoded => renewal::decode_part(sent),
            Self::Raw => Some(sent),
        }
    }

    fn write(self, part: &[u8]) -> Option<ContextId> {
        match self {
            Self::Encoded => renewal::encode_part(part),
            Self::Raw => ContextId::new(part),
        }
    }
}

/// The contexts that are renewed, by the peer's ID.
#[derive(Default)]
pub(super) struct Renewals {
    /// Drawn for the first client that asks; `None` if the system provides no randomness.
    answers: OnceLock<Option<AnswerKey>>,
    all: Mutex<BTreeMap<PeerId, RenewedContext>>,
}

struct RenewedContext {
    given: OscoreContext,
    /// How often the peer has renewed it.
    count: u32,
    /// The number of the present context of this peer.
    present: Option<u32>,
    /// One exchange of ours at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A client's first request under keys of its own part only.
pub(crate) struct BegunRenewal {
    peer: PeerId,
    drawn: [u8; DRAWN],
    /// Protected it.
    context: SecurityContext<NumberStore>,
    number: RequestNumber,
    /// Its options and payload.
    pub(crate) options: Options,
    pub(crate) payload: Vec<u8>,
}

impl OscoreContext {
    /// The context under this ID Context, in which numbers begin at 0.
    fn under(&self, id_context: &[u8]) -> Option<SecurityContext<NumberStore>> {
        let secret = self.master_secret();
        let (ours, theirs) = (&self.sender_id, &self.recipient_id);
        SecurityContext::renewed(&secret, ours, theirs, id_context, NumberStore::Volatile).ok()
    }
}

impl Renewals {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerId, RenewedContext>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self, draw: impl FnOnce() -> Option<[u8; 16]>) -> Option<&AnswerKey> {
        self.answers.get_or_init(|| draw().map(AnswerKey::new)).as_ref()
    }

    /// Adds a context. Returns false if there is one for a peer with this ID.
    pub(super) fn add(&self, peer: PeerId, given: OscoreContext) -> bool {
        let context = RenewedContext { given, count: 0, present: None, turn: Arc::default() };
        let mut all = self.lock();
        let is_new = !all.contains_key(&peer);
        all.entry(peer).or_insert(context);
        is_new
    }
}

/// A client's side.
impl OscoreContexts {
    /// The peer with which keys for the requests to this server have to be made.
    pub(crate) fn renewal_for(&self, uri: &Uri) -> Option<PeerId> {
        let all = self.renewals().lock();
        let named = all.iter().find(|(_, context)| context.given.servers.names(uri));
        let found =
            named.or_else(|| all.iter().find(|(_, context)| context.given.servers.is_all()));
        found.map(|(peer, _)| *peer)
    }

    /// Waits for an exchange with this peer that is under way.
    pub(crate) async fn renewal_turn(&self, peer: PeerId) -> Option<OwnedMutexGuard<()>> {
        let turn = self.renewals().lock().get(&peer).map(|context| context.turn.clone())?;
        Some(turn.lock_owned().await)
    }

    /// Makes the first request with the bytes that were drawn for it.
    pub(crate) fn begin_renewal(&self, peer: PeerId, drawn: [u8; DRAWN]) -> Option<BegunRenewal> {
        let mut context = self.renewals().lock().get(&peer)?.given.under(&drawn)?;
        // It is not processed.
        let get = Content { code: Code::GET, options: &[], payload: &[] };
        let mut sealed = [0; 32];
        let (outer, number) = context.protect_request(&get, &mut sealed).ok()?;
        let (options, payload) = (outer.options(&get).collect(), outer.payload.to_vec());
        Some(BegunRenewal { peer, drawn, context, number, options, payload })
    }

    /// Makes the keys with the server's answer and further bytes that were drawn. `None` if it is
    /// not the server's, or no answer to this request.
    pub(crate) fn finish_renewal(
        &self,
        begun: &BegunRenewal,
        response: &Response,
        drawn: [u8; DRAWN],
    ) -> Option<ClientContext> {
        let given = self.renewals().lock().get(&begun.peer)?.given.clone();
        let value = response.options().get(OptionNumber::OSCORE)?.value;
        let answered = renewal::decode_part(OscoreOption::decode(value)?.kid_context?)?;
        let of_answer = given.under(renewal::join(answered, &begun.drawn)?.as_slice())?;
        with_buffer(response.body().len(), |plain| {
            let (asked, body) = (&begun.context, response.body());
            let opened = of_answer.open_renewal(asked, begun.number, Some(value), body, plain);
            opened.ok().map(drop)
        })?;
        let whole = renewal::join(answered, &drawn)?;
        let context = given.under(whole.as_slice())?;
        let number = self.insert(0, given, context).ok()?;
        self.client_context(number)
    }
}

/// A server's side.
impl OscoreContexts {
    /// Takes a request whose ID Context no context has: the first one of an exchange, which is
    /// answered and not processed, or the one that ends it.
    pub(super) fn renew(
        &self,
        outer: &Message<'_>,
        option: &OscoreOption<'_>,
        plain: &mut [u8],
        draw: impl FnOnce() -> Option<[u8; 16]>,
    ) -> Result<VerifiedRequest, Unopened> {
        let no_context = || Unopened::Refused(Refusal::NoContext);
        let peer = option.kid.and_then(PeerId::new).ok_or_else(no_context)?;
        let sent = option.kid_context.ok_or_else(no_context)?;
        let mut all = self.renewals().lock();
        let renewed = all.get_mut(&peer).ok_or_else(no_context)?;
        let answers = self.renewals().answers(draw).ok_or_else(no_context)?;
        let of = Renewed { kid: peer.as_slice(), count: renewed.count };
        let mut refused = no_context();
        for form in [IdContextForm::Encoded, IdContextForm::Raw] {
            let Some(id_context) = form.read(sent) else { continue };
            let ends = answers.recognise(&of, id_context).is_some();
            // Room for our part in front of it.
            let begins = (1..=MAX_CONTEXT_ID - 2 - ANSWERED).contains(&id_context.len());
            if !(ends || begins) {
                continue;
            }
            let mut context = renewed.given.under(id_context).ok_or_else(no_context)?;
            let opened = match context.unprotect_request(outer, plain) {
                Ok(opened) => opened,
                Err(refusal) => {
                    refused = refusal.into();
                    continue;
                }
            };
            if !ends {
                let begun = BegunByClient { context: &context, id1: id_context, form };
                let answer = answers.answer(&of, id_context);
                let answer = first_answer(&renewed.given, &begun, &answer, opened.number);
                return Err(answer.map_or_else(no_context, Unopened::NewKeys));
            }
            renewed.count += 1;
            context.omit_id_context();
            let earlier = renewed.present.take();
            if let Some(earlier) = earlier {
                self.table_mut().remove(earlier);
            }
            let number = self.insert(0, renewed.given.clone(), context);
            let number = number.map_err(|_| no_context())?;
            renewed.present = Some(number);
            let request =
                SecuredRequest::new(number, opened.number.get()).ok_or_else(no_context)?;
            let context = self.client_context(number).ok_or_else(no_context)?;
            return Ok(VerifiedRequest { request, context, length: opened.len, is_new: true });
        }
        Err(refused)
    }
}

/// A client's first request.
struct BegunByClient<'c> {
    context: &'c SecurityContext<NumberStore>,
    id1: &'c [u8],
    form: IdContextForm,
}

/// The answer to a first request: 4.01 under the keys of both parts, with ours in the option.
fn first_answer(
    given: &OscoreContext,
    begun: &BegunByClient<'_>,
    answer: &[u8],
    request: RequestNumber,
) -> Option<Response> {
    let context = given.under(renewal::join(answer, begun.id1)?.as_slice())?;
    let refusal = Content { code: Code::UNAUTHORIZED, options: &[], payload: &[] };
    let mut sealed = [0; 32];
    let outer = context.protect_renewal(begun.context, request, &refusal, &mut sealed).ok()?;
    let sent = begun.form.write(answer)?;
    let option = OscoreOption::decode(outer.value.as_slice())?;
    let value = OscoreOption { kid_context: Some(sent.as_slice()), ..option }.encode();
    let response = Response::new(outer.code).option(OptionNumber::OSCORE, value.as_slice());
    Some(response.payload(outer.payload.to_vec()))
}
