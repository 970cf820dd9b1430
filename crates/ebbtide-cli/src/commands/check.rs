//! `ebbtide check`: whether a server or a client keeps the rules of the RFCs.

use crate::check::client::{Copies, IDLE, LESSONS, Lesson, Listener, REQUESTS};
use crate::check::{CheckSocket, CheckedServer, Finding, Level, Rule, discover, rules};
use crate::client::{block_on, seconds};
use crate::failure::Failure;
use crate::text::paragraph;
use clap::Args;
use ebbtide::{Scheme, Uri};
use serde::Serialize;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Check a server or a client against the rules of the RFCs that its datagrams show
///
/// It sends well-formed, damaged and unexpected messages over a plain socket and names the clause of each fault. With
/// --listen it answers a client late, wrongly, in parts or not at all. Exit code 1 says that a rule does not hold that
/// is a MUST.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// coap://HOST[:PORT], with the path of a resource to include
    #[arg(required_unless_present = "listen")]
    uri: Option<String>,
    /// Wait here for a client to check, which must send one Confirmable request after the other
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["uri", "wait"])]
    listen: Option<SocketAddr>,
    /// A resource that may be changed: also try POST and uploads
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    write: Option<String>,
    /// How long an answer may take
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    wait: Duration,
    /// Also the rules that take minutes: repeated notifications, silent clients
    #[arg(long)]
    slow: bool,
    /// Print all rules, not only those that do not hold
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON: an object for each rule
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    clause: &'static str,
    level: Level,
    rule: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// Checks.
///
/// # Errors
///
/// Returns an error if no server answers or no client asks, or if a MUST does not hold.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let rows = match (&args.uri, args.listen) {
        (_, Some(address)) => check_client(args, address)?,
        (uri, None) => check_server(args, uri.as_deref().unwrap_or_default())?,
    };
    if args.json {
        let json = serde_json::to_string_pretty(&rows).map_err(Failure::work)?;
        writeln!(io::stdout(), "{json}")?;
    } else {
        summary(&mut io::stdout(), &rows)?;
    }
    match rows.iter().any(Row::is_fault) {
        true => Err(Failure::Exit(1)),
        false => Ok(()),
    }
}

/// How often a rule is tried before it counts as broken. The network loses and delays datagrams; a
/// fault of the server shows each time.
const ATTEMPTS: u32 = 3;

fn check_server(args: &CheckArgs, uri: &str) -> Result<Vec<Row>, Failure> {
    let uri: Uri = uri.parse().map_err(Failure::usage)?;
    if uri.scheme() != Scheme::Coap {
        let text = "check speaks plain CoAP over UDP only: name a coap:// address";
        return Err(Failure::usage(text));
    }
    let address = block_on(async { Ok(ebbtide::Client::new().resolve(&uri).await?) })?;
    let mut peer = CheckSocket::connect(address, args.wait)?;
    if !peer.is_alive() {
        return Err(Failure::work(format_args!("{address} answers none of six GETs")));
    }
    let path = uri.path().fold(String::new(), |path, segment| path + "/" + segment);
    let path = (!path.is_empty()).then_some(path);
    let server = CheckedServer { writable: args.write.clone(), ..discover(&mut peer, path) };
    let mut rows = Vec::new();
    let mut is_alive = true;
    for rule in rules() {
        let Rule { clause, mut level, text, .. } = *rule;
        let finding = if !is_alive {
            Finding::Untried("the server answers no more".to_owned())
        } else if rule.is_slow && !args.slow {
            Finding::Untried("it takes minutes: --slow".to_owned())
        } else if let Some(finding) = tried(rule, &mut peer, &server, args.wait)? {
            finding
        } else {
            is_alive = false;
            // Whatever the rule says, a datagram that ends a server is a fault.
            level = Level::Must;
            let said = "none of six GETs is answered since this was tried: has the server died?";
            Finding::Broken(said.to_owned())
        };
        let row = Row { clause, level, rule: text, finding };
        row.show(args)?;
        rows.push(row);
    }
    Ok(rows)
}

/// Tries a rule, again if it does not hold. `None` if the server answers nothing afterwards.
fn tried(
    rule: &Rule,
    peer: &mut CheckSocket,
    server: &CheckedServer,
    wait: Duration,
) -> io::Result<Option<Finding>> {
    let mut finding = (rule.attempt)(peer, server);
    for _ in 1..ATTEMPTS {
        if !peer.is_alive() {
            return Ok(None);
        }
        if !matches!(finding, Finding::Broken(_)) {
            return Ok(Some(finding));
        }
        // What is still under way does not reach another port.
        *peer = CheckSocket::connect(peer.server()?, wait)?;
        if (rule.attempt)(peer, server) == Finding::Holds {
            finding = Finding::Holds;
        }
    }
    Ok(peer.is_alive().then_some(finding))
}

fn check_client(args: &CheckArgs, address: SocketAddr) -> Result<Vec<Row>, Failure> {
    let mut listener = Listener::bind(address)
        .map_err(|error| Failure::work(format_args!("--listen {address}: {error}")))?;
    let own = listener.local_addr()?;
    eprintln!("waiting at coap://{own} for {REQUESTS} Confirmable requests, one after the other");
    let copies = if args.slow { Copies::All } else { Copies::Two };
    let mut rows = Vec::new();
    let mut has_come = false;
    for Lesson { rules, attempt } in LESSONS {
        let findings = match listener.request(IDLE) {
            Some(request) => {
                has_come = true;
                attempt(&mut listener, &request, copies)
            }
            None if !has_come => {
                let text = format_args!("no Confirmable request came within {} s", IDLE.as_secs());
                return Err(Failure::work(text));
            }
            None => {
                let untried = Finding::Untried("no further request came".to_owned());
                vec![untried; rules.len()]
            }
        };
        for (rule, finding) in rules.iter().zip(findings) {
            let row = Row { clause: rule.clause, level: rule.level, rule: rule.text, finding };
            row.show(args)?;
            rows.push(row);
        }
    }
    Ok(rows)
}

impl Row {
    /// Whether a MUST does not hold.
    fn is_fault(&self) -> bool {
        self.level == Level::Must && matches!(self.finding, Finding::Broken(_))
    }

    /// Prints the row at once, unless all are printed as JSON.
    fn show(&self, args: &CheckArgs) -> io::Result<()> {
        if args.json { Ok(()) } else { self.write(&mut io::stdout(), args.verbose) }
    }

    /// Rules that hold or that were not tried only on request.
    fn write(&self, out: &mut impl Write, all: bool) -> io::Result<()> {
        let (verdict, detail) = match &self.finding {
            Finding::Broken(detail) if self.level == Level::Must => ("FAULT", detail.as_str()),
            Finding::Broken(detail) => ("advice", detail.as_str()),
            Finding::Holds if all => ("holds", ""),
            Finding::Untried(reason) if all => ("untried", reason.as_str()),
            _ => return Ok(()),
        };
        paragraph(out, &format!("{verdict:8} {:16} ", self.clause), self.rule)?;
        if !detail.is_empty() {
            paragraph(out, &" ".repeat(26), &crate::client::pretty::harmless(detail))?;
        }
        Ok(())
    }
}

/// How many rules hold.
fn summary(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let count = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    writeln!(
        out,
        "{} rules: {} hold, {} faults, {} pieces of advice, {} not tried",
        rows.len(),
        count(|row| row.finding == Finding::Holds),
        count(Row::is_fault),
        count(|row| row.level == Level::Should && matches!(row.finding, Finding::Broken(_))),
        count(|row| matches!(row.finding, Finding::Untried(_))),
    )
}
