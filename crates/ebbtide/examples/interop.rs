//! Ebbtide's adapter for the interoperability matrix, which `interop/README.md` describes:
//! `interop server PORT HOST [coap|coap+tcp|coaps|coaps+tcp]`, or `interop ask URI`.

use bytes::Bytes;
use ebbtide::dtls::{Certificates, Credentials, DtlsBind, DtlsConfig, Psk, RawKey, TrustedKeys};
use ebbtide::edhoc::EdhocCredentials;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Subject, get, post, put};
use ebbtide::stream::{Identity, Listen, TlsServer, Trust};
use ebbtide::{
    Client, ClientConfig, Code, OptionNumber, Options, Request, Response, Server, ServerConfig,
};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const UNSUPPORTED: u8 = 127;

/// The key of all adapters.
fn psk() -> Option<Psk> {
    Psk::new(b"sesame-of-interop").ok()
}

/// The certificate of all adapters and the authority that issued it, from the folder that the runner names.
fn certificates() -> Result<Option<(Identity, Trust)>, Box<dyn Error>> {
    let Some(folder) = std::env::var_os("INTEROP_CERTIFICATES") else { return Ok(None) };
    let read = |name: &str| std::fs::read(std::path::Path::new(&folder).join(name));
    let identity = Identity::from_pem(&read("peer.crt")?, &read("peer.key")?)?;
    Ok(Some((identity, Trust::authorities(&read("authority.pem")?)?)))
}

/// The raw public key of all adapters, from the folder that the runner names.
fn raw_key() -> Result<Option<(RawKey, TrustedKeys)>, Box<dyn Error>> {
    let Some(folder) = std::env::var_os("INTEROP_RAW_KEYS") else { return Ok(None) };
    let own = RawKey::from_pem(&std::fs::read(std::path::Path::new(&folder).join("peer.key"))?)?;
    let trusted = TrustedKeys::new().and(own.fingerprint(), "peer");
    Ok(Some((own, trusted)))
}

/// The OSCORE context of all adapters, if the runner wants it.
fn oscore(sender: &[u8], recipient: &[u8]) -> Result<Option<OscoreContexts>, Box<dyn Error>> {
    let Some(kind) = std::env::var_os("INTEROP_OSCORE") else { return Ok(None) };
    let secret: Vec<u8> = (1..=16).collect();
    let salt = 0x9e7c_a922_2378_6340_u64.to_be_bytes();
    let mut context = OscoreContext::new(&secret, sender, recipient).salt(&salt);
    if kind == "renewed" {
        context = context.renewed();
    }
    Ok(Some(OscoreContexts::new([context])?))
}

/// The keys and credentials of both sides for EDHOC, if the runner gives them; the server's are the first.
fn edhoc(role: Role) -> Result<Option<EdhocCredentials>, Box<dyn Error>> {
    let Ok(text) = std::env::var("INTEROP_EDHOC") else { return Ok(None) };
    let digits = |part: &str| {
        let pairs = (0..part.len()).step_by(2).filter_map(|at| part.get(at..at + 2));
        pairs.map(|pair| u8::from_str_radix(pair, 16)).collect::<Result<Vec<u8>, _>>()
    };
    let parts: Vec<Vec<u8>> = text.split(':').map(digits).collect::<Result<_, _>>()?;
    let [server_key, server, client_key, client] = parts.as_slice() else {
        return Err("INTEROP_EDHOC has four parts".into());
    };
    let (key, own, peer) = match role {
        Role::Server => (server_key, server, client),
        Role::Client => (client_key, client, server),
    };
    Ok(Some(EdhocCredentials::new(key, own)?.peer(peer, "matrix")?))
}

#[derive(Copy, Clone)]
enum Role {
    Server,
    Client,
}

/// DTLS with what the runner asks for: connection IDs of a length (without it, clients have empty ones), and DTLS 1.3.
fn dtls_config() -> DtlsConfig {
    let mut dtls = DtlsConfig::default();
    #[cfg(feature = "dtls13")]
    if std::env::var_os("INTEROP_DTLS13").is_some() {
        dtls.dtls13 = Some(ebbtide::dtls::Dtls13Config::default());
    }
    if let Some(length) = std::env::var("INTEROP_CID").ok().and_then(|text| text.parse().ok()) {
        dtls.client.cid_length = Some(length);
        dtls.server.cid_length = Some(length);
    }
    dtls
}

fn digits(length: usize) -> Bytes {
    b"0123456789".iter().copied().cycle().take(length).collect()
}

/// A state that changes at the interval `every`; `say` formats it.
fn ticking(every: u64, confirmable: bool, say: fn(u64) -> String) -> ebbtide::server::Resource {
    let subject = if confirmable { Subject::new() } else { Subject::non_confirmable() };
    let now = Arc::new(AtomicU64::new(0));
    let state = now.clone();
    let resource = get(move |_: &Call<'_>| Response::content(say(state.load(Ordering::Relaxed))));
    let resource = resource.observable(&subject);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(every)).await;
            now.fetch_add(1, Ordering::Relaxed);
            subject.changed();
        }
    });
    resource
}

async fn separate(_: Call<'static>) -> Response {
    tokio::time::sleep(Duration::from_millis(500)).await;
    Response::content("that took a while")
}

const TAG: &[u8] = &[0x2a];

fn has_tag(call: &Call<'_>, number: OptionNumber) -> bool {
    call.message().options().any(|option| option.number == number && option.value == TAG)
}

fn get_tagged(call: &Call<'_>) -> Response {
    if call.accept().is_some_and(|format| format.0 != 0) {
        Response::new(Code::NOT_ACCEPTABLE)
    } else if has_tag(call, OptionNumber::ETAG) {
        Response::new(Code::VALID).etag(TAG)
    } else {
        Response::content("tagged").etag(TAG)
    }
}

fn put_tagged(call: &Call<'_>) -> Response {
    let message = call.message();
    let refused = message.option(OptionNumber::IF_NONE_MATCH).is_some()
        || message.option(OptionNumber::IF_MATCH).is_some()
            && !has_tag(call, OptionNumber::IF_MATCH);
    Response::new(if refused { Code::PRECONDITION_FAILED } else { Code::CHANGED })
}

/// A handler that demands Echo itself (RFC 9175 section 2.3).
fn fresh(call: &Call<'_>) -> Response {
    match call.message().option(OptionNumber::ECHO) {
        Some(_) => Response::content("fresh"),
        None => Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, b"echo-me!"),
    }
}

fn router() -> Router {
    fn body(body: Bytes) -> ebbtide::server::Resource {
        get(move |_: &Call<'_>| Response::content(body.clone()))
    }
    fn echo(code: Code) -> impl Fn(&Call<'_>) -> Response + Send + Sync + 'static {
        move |call| Response::new(code).payload(Bytes::copy_from_slice(call.payload()))
    }
    let counted = AtomicU64::new(0);
    let count = move |_: &Call<'_>| {
        let count = counted.fetch_add(1, Ordering::Relaxed) + 1;
        Response::new(Code::CHANGED).payload(count.to_string())
    };
    let length =
        |call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().len().to_string());
    let query = |call: &Call<'_>| Response::content(call.query().collect::<Vec<_>>().join("&"));
    Router::new()
        .route("/test", body(digits(60)))
        .route("/large", body(digits(1 << 20)))
        .route("/medium", body(digits(10_000)))
        .route("/a b", body("spaced".into()))
        .route("/separate", get(separate))
        .route("/query", get(query))
        .route("/length", put(length))
        .route("/count", post(count))
        .route(
            "/echo",
            put(echo(Code::CHANGED))
                .post(echo(Code::CHANGED))
                .patch(echo(Code::CHANGED))
                .ipatch(echo(Code::CHANGED))
                .fetch(echo(Code::CONTENT))
                .delete(|_: &Call<'_>| Response::new(Code::DELETED)),
        )
        .route("/tagged", get(get_tagged).put(put_tagged).conditional())
        .route("/fresh", get(fresh))
        .route("/time", ticking(250, true, |n| n.to_string()))
        .route("/times", ticking(500, false, |n| (n % 10).to_string().repeat(3000)))
}

async fn serve(port: &str, host: &str, scheme: &str) -> Result<ExitCode, Box<dyn Error>> {
    let address: SocketAddr = (host.parse::<std::net::IpAddr>()?, port.parse()?).into();
    let mut config = ServerConfig::new().max_body(2 << 20);
    if let Some(credentials) = edhoc(Role::Server)? {
        config = config.edhoc(credentials);
    }
    if let Some(contexts) = oscore(b"server", b"client")? {
        config = config.oscore(contexts);
    }
    let unused = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = match scheme {
        "coap" => Server::with_config(router(), config, [address])?,
        "coap+tcp" => {
            Server::with_config(router(), config, [unused])?.listen(Listen::Tcp(address))?
        }
        "coaps" => {
            let bind = match (certificates()?, raw_key()?) {
                (_, Some((own, peers))) => DtlsBind::with_raw_key(address, &own, peers),
                (Some((identity, trust)), None) => {
                    let tls = TlsServer::new(identity).require_client_certificates(&trust)?;
                    DtlsBind::with_certificates(address, &tls)?
                }
                (None, None) => DtlsBind::new(address, |_| psk()),
            };
            let config = config.dtls(dtls_config()).bind_dtls(bind);
            Server::with_config(router(), config, [unused])?
        }
        "coaps+tcp" => {
            let (identity, trust) = certificates()?.ok_or("INTEROP_CERTIFICATES is not set")?;
            let tls = TlsServer::new(identity).require_client_certificates(&trust)?;
            Server::with_config(router(), config, [unused])?.listen(Listen::Tls(address, tls))?
        }
        _ => return Ok(UNSUPPORTED.into()),
    };
    println!("ready");
    server.run().await?;
    Ok(ExitCode::SUCCESS)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn shown(response: &Response) -> String {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let options: &Options = response.options();
    let options: Vec<String> =
        options.iter().map(|o| format!("{}:{}", o.number.0, hexadecimal(o.value))).collect();
    let (code, options) = (response.code(), or_none(options.join(",")));
    format!("{code} {options} {}", or_none(hexadecimal(response.body())))
}

fn from_hexadecimal(text: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    let pairs = (0..text.len() / 2).filter_map(|n| text.get(2 * n..2 * n + 2));
    pairs.map(|pair| u8::from_str_radix(pair, 16)).collect()
}

async fn one(client: &Client, base: &str, line: &str) -> Result<(), Box<dyn Error>> {
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut wait = Duration::from_secs(8);
    if method == "PING" {
        tokio::time::timeout(wait, client.ping(base)).await??;
        println!("rst - -");
        return Ok(());
    }
    let code = match method {
        "POST" => Code::POST,
        "PUT" => Code::PUT,
        "DELETE" => Code::DELETE,
        "FETCH" => Code::FETCH,
        "PATCH" => Code::PATCH,
        "IPATCH" => Code::IPATCH,
        _ => Code::GET,
    };
    let mut request = Request::new(code, format!("{base}{path}"))?;
    if std::env::var_os("INTEROP_Q_BLOCK").is_some() {
        request = request.q_block();
    }
    let mut observed = 0;
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        request = match key {
            "non" => request.non_confirmable(),
            "payload" => request.payload(from_hexadecimal(value)?),
            "digits" => request.payload(digits(value.parse()?)),
            "block" => request.block_size(value.parse()?),
            "opt" => {
                let (number, value) = value.split_once(':').unwrap_or((value, ""));
                request.option(OptionNumber(number.parse()?), &from_hexadecimal(value)?)
            }
            "wait" => {
                wait = Duration::from_secs_f64(value.parse()?);
                request
            }
            "observe" => {
                observed = value.parse()?;
                request
            }
            _ => request,
        };
    }
    let asked = async {
        if observed == 0 {
            println!("{}", shown(&client.request(request).await?));
            return Ok::<(), Box<dyn Error>>(());
        }
        let mut states = client.observe_with(request).await?;
        for _ in 0..observed {
            let state = states.next().await.ok_or("the observation has ended")??;
            println!("{}", shown(&state));
        }
        drop(states);
        // The next notification is answered with a Reset, which cancels the observation.
        tokio::time::sleep(Duration::from_millis(700)).await;
        Ok(())
    };
    tokio::time::timeout(wait, asked).await?
}

async fn ask(base: &str) -> Result<ExitCode, Box<dyn Error>> {
    if !["coap:", "coap+tcp:", "coaps:", "coaps+tcp:"].iter().any(|scheme| base.starts_with(scheme))
    {
        return Ok(UNSUPPORTED.into());
    }
    let mut config = ClientConfig::new().max_retransmit(8).dtls(dtls_config());
    if let Some(credentials) = edhoc(Role::Client)? {
        config = config.edhoc(credentials);
    }
    if let Some(contexts) = oscore(b"client", b"server")? {
        config = config.oscore(contexts);
    }
    config = match (certificates()?, raw_key()?) {
        (_, Some((own, peers))) => config.certificates(Certificates::raw_keys(peers, Some(&own))),
        (Some((identity, trust)), None) => config
            .certificates(Certificates::new(&trust, Some(&identity))?)
            .trust(trust)
            .identity(identity),
        (None, None) => config.credentials(psk().map(|psk| Credentials::new("matrix", psk))),
    };
    let client = Client::with_config(config);
    println!("ready");
    // A separate thread reads lines, so that the client continues while there is none.
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        if let Err(error) = one(&client, base, &line).await {
            println!("error {error}");
        }
        println!(".");
        std::io::stdout().flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", port, host] => serve(port, host, "coap").await,
        ["server", port, host, scheme] => serve(port, host, scheme).await,
        ["ask", base] => ask(base).await,
        _ => Err("interop server PORT HOST [SCHEME] | interop ask URI".into()),
    }
}
