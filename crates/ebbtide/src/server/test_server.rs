//! Tests of handlers without a socket.

use super::origin::Origin;
use super::reply::Reply;
use super::router::Router;
use crate::message::{Request, Response};
use ebbtide_core::wire::{
    Code, Content, HEADER_LEN, MAX_TOKEN_LEN, Message, MessageId, Token, Type,
};
use std::net::{Ipv4Addr, SocketAddr};

/// Answers requests with the handlers of a router, without a socket or a network, for the tests of
/// an application. Bodies arrive whole, whatever their length.
///
/// ```
/// use ebbtide::server::{Router, TestServer, get};
/// use ebbtide::{Code, Request};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ebbtide::UriError> {
/// let server = TestServer::new(Router::new().route("/hello", get(|| "hello")));
/// let response = server.request(Request::get("coap://test/hello")?).await;
/// assert_eq!((response.code(), &*response.text()), (Code::CONTENT, "hello"));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TestServer {
    router: Router,
    remote: SocketAddr,
}

impl TestServer {
    /// Creates a server of these resources.
    #[must_use]
    pub fn new(router: Router) -> Self {
        Self { router, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 5683)) }
    }

    /// Sets the address from which requests arrive.
    #[must_use]
    pub fn remote(mut self, remote: SocketAddr) -> Self {
        self.remote = remote;
        self
    }

    /// Answers a request. Only the path and the query of its URI matter. A [`Peer`](crate::Peer) that a handler takes
    /// cannot be reached.
    pub async fn request(&self, request: Request) -> Response {
        let mut options = request.options;
        request.uri.to_options(&mut options);
        let datagram = options.with_slice(None, |options| {
            let content = Content { code: request.code, options, payload: &request.payload };
            let mut bytes = vec![0; HEADER_LEN + MAX_TOKEN_LEN + content.encoded_len()];
            let encoded = content.encode(&mut bytes, Type::Confirmable, MessageId(1), Token::EMPTY);
            bytes.truncate(encoded.map_or(0, |encoded| encoded.len));
            bytes
        });
        let Ok(message) = Message::parse(&datagram) else {
            return Response::new(Code::BAD_REQUEST);
        };
        let found = match self.router.find(&message) {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        let origin = Origin::unreachable(self.remote);
        let resource = &found.route.resource;
        let reply = found.call(&origin, &message, message.payload(), |call| {
            match resource.authorize.as_ref().map(|authorize| authorize(call)) {
                Some(Err(refusal)) => Reply::now(refusal),
                Some(Ok(())) | None => resource.call(call),
            }
        });
        reply.wait().await
    }
}
