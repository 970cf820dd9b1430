//! A page that shows devices, their resources, and how requests to them go.

mod listings;

use crate::directory::Directory;
use crate::gateway::Gateway;
use crate::http::{self, AnswerBody, whole};
use ebbtide::Uri;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The files of the page, with their media types. They have no secret.
const PAGE: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page/explore.html")),
    ("/explore.css", "text/css; charset=utf-8", include_str!("page/explore.css")),
    ("/explore.js", "text/javascript; charset=utf-8", include_str!("page/explore.js")),
];
/// The page loads its own files and asks its own gateway, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                      form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// A page for browsers: the devices behind a [`Gateway`] and their resources, requests, observations, the measurements
/// of each path, and the latest exchanges. It reaches what the gateway's clients reach, serves
/// the addresses of [`GatewayConfig::only_for`](crate::GatewayConfig::only_for), and needs a token.
///
/// ```no_run
/// # use ebbtide_proxy::{Explorer, Gateway, GatewayConfig};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::new(GatewayConfig::new().allow("10.0.0.0/8".parse()?));
/// let explorer = Explorer::new(&gateway)?;
/// println!("http://127.0.0.1:8081/#token={}", explorer.token());
/// explorer.serve(tokio::net::TcpListener::bind("127.0.0.1:8081").await?).await;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Explorer {
    gateway: Gateway,
    directory: Option<Directory>,
    devices: Vec<Uri>,
    token: String,
}

impl Explorer {
    /// An explorer with a new token.
    ///
    /// # Errors
    ///
    /// Returns an error if the system provides no randomness.
    pub fn new(gateway: &Gateway) -> io::Result<Self> {
        let half = || getrandom::u64().map_err(io::Error::other);
        let token = format!("{:016x}{:016x}", half()?, half()?);
        gateway.inner.upstream.timeline.watch();
        let gateway = gateway.clone();
        Ok(Self { gateway, directory: None, devices: Vec::new(), token })
    }

    /// Lists the devices of this directory as well.
    #[must_use]
    pub fn directory(mut self, directory: &Directory) -> Self {
        self.directory = Some(directory.clone());
        self
    }

    /// Lists the device with this URI as well.
    #[must_use]
    pub fn device(mut self, uri: &Uri) -> Self {
        self.devices.push(uri.clone());
        self
    }

    /// The token that the page needs: its address is `http://HOST:PORT/#token=TOKEN`. Browsers do not send the part
    /// behind `#`, so no log has it.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Answers browsers at this listener for as long as the future is polled. With the token, a browser can do what the
    /// gateway's clients can; without TLS, it should be an address of this machine.
    pub async fn serve(self, listener: TcpListener) {
        let explorer = Arc::new(self);
        http::serve(listener, Arc::new(http::Plain), move |from, request| {
            let explorer = explorer.clone();
            async move { explorer.answer(from, request).await }
        })
        .await;
    }

    async fn answer(&self, from: SocketAddr, request: Request<Incoming>) -> Response<AnswerBody> {
        let path = request.uri().path();
        if let Some((_, media, text)) = PAGE.iter().find(|(known, ..)| *known == path) {
            return page(media, text);
        }
        if !self.is_authorized(&request) {
            return refused(
                StatusCode::UNAUTHORIZED,
                "open the address with its token, as the command prints it",
            );
        }
        if !self.gateway.inner.upstream.access.may_ask(from.ip()) {
            return refused(StatusCode::FORBIDDEN, "this gateway does not serve your address");
        }
        if path.starts_with(http::PREFIX) {
            return http::answer(&self.gateway, from, request).await;
        }
        if request.method() != Method::GET {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "it can only be read");
        }
        match path {
            "/api/devices" => json(&self.devices()),
            "/api/links" => match self.links(from, request.uri().query().unwrap_or_default()).await
            {
                Ok(links) => json(&links),
                Err(why) => refused(StatusCode::BAD_GATEWAY, &why),
            },
            "/api/paths" => json(&self.paths()),
            "/api/exchanges" => json(&self.exchanges()),
            _ => refused(StatusCode::NOT_FOUND, "there is nothing"),
        }
    }

    fn is_authorized(&self, request: &Request<Incoming>) -> bool {
        let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|given| given.strip_prefix(b"Bearer ")).unwrap_or_default();
        // In a time that does not tell how much of it is right.
        let differs =
            given.iter().zip(self.token.as_bytes()).fold(0, |differs, (a, b)| differs | a ^ b);
        given.len() == self.token.len() && differs == 0
    }
}

fn text(status: StatusCode, media: &str, body: String) -> Response<AnswerBody> {
    let mut answer = Response::new(whole(body));
    *answer.status_mut() = status;
    let fields: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, media),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

fn page(media: &str, body: &str) -> Response<AnswerBody> {
    let mut answer = text(StatusCode::OK, media, body.to_owned());
    let fields =
        [(header::CONTENT_SECURITY_POLICY, POLICY), (header::REFERRER_POLICY, "no-referrer")];
    for (name, value) in fields {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn json(value: &serde_json::Value) -> Response<AnswerBody> {
    text(StatusCode::OK, "application/json", value.to_string())
}

fn refused(status: StatusCode, why: &str) -> Response<AnswerBody> {
    text(status, "text/plain; charset=utf-8", format!("{why}\n"))
}
