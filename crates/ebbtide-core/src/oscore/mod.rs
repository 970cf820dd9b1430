//! OSCORE (RFC 8613): requests and responses that are protected end to end, also through proxies.
//!
//! A [`SecurityContext`] is derived from a [`MasterSecret`] that two peers share. It protects a
//! [`Content`](crate::wire::Content) and gives the parts of the outer message; of a received
//! message it makes the datagram that would have arrived without OSCORE. Nothing here needs an
//! allocator, reads a clock or sends anything.
//!
//! * **A nonce is never used twice.** Sequence numbers are reserved through a [`SequenceStore`]
//!   before they are used (appendix B.1.1), and the nonce of a request protects one response at
//!   most.
//! * **A secret that was used before gives new keys** by an exchange with the peer (appendix B.2): see [`renewal`].
//! * **A request is accepted once.** Those of before a restart are recognised by asking the client
//!   for an Echo (appendix B.1.2): see [`Freshness`].
//!
//! ```
//! use ebbtide_core::oscore::{Algorithm, MasterSecret, SecurityContext, Volatile};
//! use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
//!
//! let secret = MasterSecret {
//!     secret: &[7; 16], salt: &[], id_context: None, algorithm: Algorithm::AesCcm16_64_128,
//! };
//! let mut client = SecurityContext::new(&secret, b"client", b"server", Volatile)?;
//! let path = [Opt { number: OptionNumber::URI_PATH, value: b"temperature" }];
//! let get = Content { code: Code::GET, options: &path, payload: &[] };
//! let mut ciphertext = [0; 64];
//! let (outer, _request) = client.protect_request(&get, &mut ciphertext)?;
//! assert_eq!(outer.code, Code::POST);
//! assert!(outer.options(&get).all(|opt| opt.number == OptionNumber::OSCORE));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aead;
mod binding;
mod cbor;
mod context;
mod derive;
mod error;
mod numbers;
mod option;
mod order;
mod outer;
mod protect;
pub mod renewal;
mod short;
#[cfg(feature = "alloc")]
mod table;
mod unprotect;
mod window;

pub use aead::Algorithm;
pub use context::{Freshness, RequestNumber, SecurityContext};
pub use derive::{MasterSecret, ParameterError};
pub use error::{ProtectError, Refusal, ResponseFault};
pub use numbers::{MAX_SEQUENCE_NUMBER, Numbering, SequenceStore, Volatile};
pub use option::{OscoreOption, OscoreValue};
pub use order::NotificationOrder;
pub use outer::OuterMessage;
pub use short::{ContextId, MAX_CONTEXT_ID, MAX_PEER_ID, PeerId};
#[cfg(feature = "alloc")]
pub use table::{ContextName, ContextTable};
pub use unprotect::{OpenedRequest, OpenedResponse};
