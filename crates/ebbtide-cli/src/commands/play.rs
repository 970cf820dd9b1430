//! `ebbtide play`: the testbed as a page in the browser.
//!
//! The page computes by itself and asks for static files only. They are read once, at the start; what a request names
//! never becomes a path.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at the same time; a further one is closed.
const CONNECTIONS: usize = 16;
/// The time that a connection may take to send its request, and to take a part of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of bytes of a request's head.
const MAX_HEAD: usize = 8192;
/// The maximum size of a file of the page.
const MAX_FILE: u64 = 32 << 20;

/// Judge networks in the browser: a form, a file, and the verdict at once
#[derive(clap::Args)]
pub(crate) struct PlayArgs {
    /// The folder of the page, which `bash web/build.sh` builds
    #[arg(long, value_name = "DIR", default_value = "target/web")]
    site: PathBuf,
    /// The port, on this machine only; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,
}

/// The encodings of packed files and the endings of their names, the smallest first.
const ENCODINGS: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

/// The files of the page by name.
type Site = BTreeMap<String, Vec<u8>>;

pub(crate) fn run(args: &PlayArgs) -> Result<(), Failure> {
    let site = Arc::new(read(&args.site)?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        Failure::work(format_args!(
            "--port {}: {error}; another port may be free, or give 0",
            args.port
        ))
    })?;
    let address = listener.local_addr().map_err(Failure::work)?;
    let mut out = io::stdout();
    writeln!(out, "http://{address}/ (Ctrl-C ends)")?;
    out.flush()?;
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            pause();
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (site, open) = (Arc::clone(&site), Arc::clone(&open));
        std::thread::spawn(move || {
            // A browser that goes away gets no answer.
            let _ = converse(stream, &site);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// Waits for descriptors: most likely none are left, and they become free again.
#[expect(
    clippy::disallowed_methods,
    reason = "a server on the wall clock has nothing else to wait for"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}

/// Reads the files of the folder.
fn read(folder: &Path) -> Result<Site, Failure> {
    let missing = |error: &dyn std::fmt::Display| {
        Failure::usage(format_args!(
            "--site {}: {error}; `bash web/build.sh` in the repository builds the page into target/web",
            folder.display()
        ))
    };
    let mut site = Site::new();
    for entry in fs::read_dir(folder).map_err(|error| missing(&error))? {
        let entry = entry.map_err(|error| missing(&error))?;
        let about = entry.metadata().map_err(|error| missing(&error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if about.is_file() && about.len() <= MAX_FILE && content_type(&name).is_some() {
            site.insert(name, fs::read(entry.path()).map_err(|error| missing(&error))?);
        }
    }
    for name in ["index.html", "ebbtide.wasm"] {
        if !site.contains_key(name) {
            return Err(missing(&format_args!("there is no {name}")));
        }
    }
    Ok(site)
}

fn content_type(name: &str) -> Option<&'static str> {
    let ending = name.trim_end_matches(".gz").trim_end_matches(".br").rsplit('.').next()?;
    match ending {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "wasm" => Some("application/wasm"),
        _ => None,
    }
}

/// Reads one request and answers it.
fn converse(mut stream: TcpStream, site: &Site) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part)?;
        if count == 0 || head.len() + count > MAX_HEAD {
            return Ok(());
        }
        head.extend_from_slice(&part[..count]);
    }
    stream.write_all(&answer(&String::from_utf8_lossy(&head), site))
}

/// The answer to a request with this head.
fn answer(head: &str, site: &Site) -> Vec<u8> {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let name = match target.split('?').next().unwrap_or_default().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let taken = fields.filter(|(field, _)| field.eq_ignore_ascii_case("accept-encoding"));
    let taken: Vec<&str> = taken.flat_map(|(_, value)| value.split(',')).map(str::trim).collect();
    let packed = ENCODINGS.iter().find_map(|(encoding, ending)| {
        let file = site.get(&format!("{name}.{ending}"))?;
        taken.contains(encoding).then_some((*encoding, file))
    });
    let (status, kind, body) = match (method, site.get(name), packed) {
        ("GET" | "HEAD", _, Some((_, file))) => ("200 OK", content_type(name), file.as_slice()),
        ("GET" | "HEAD", Some(file), None) => ("200 OK", content_type(name), file.as_slice()),
        ("GET" | "HEAD", None, None) => ("404 Not Found", None, &b"404 Not Found\n"[..]),
        _ => ("405 Method Not Allowed", None, &b"405 Method Not Allowed\n"[..]),
    };
    let kind = kind.unwrap_or("text/plain; charset=utf-8");
    let encoding =
        packed.map_or_else(String::new, |(name, _)| format!("Content-Encoding: {name}\r\n"));
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{encoding}Content-Length: {}\r\nVary: Accept-Encoding\r\n\
         Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if method != "HEAD" {
        answer.extend_from_slice(body);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        Site::from([
            file("index.html", "<p>"),
            file("ebbtide.wasm", "plain"),
            file("ebbtide.wasm.br", "smallest"),
            file("ebbtide.wasm.gz", "packed"),
        ])
    }

    fn text(request: &str) -> String {
        String::from_utf8(answer(&format!("{request}\r\n\r\n"), &site())).unwrap()
    }

    #[test]
    fn the_page_is_at_the_root_and_only_its_files_exist() {
        assert!(text("GET / HTTP/1.1").ends_with("\r\n\r\n<p>"));
        assert!(text("GET /index.html?x=1 HTTP/1.1").starts_with("HTTP/1.1 200 OK\r\n"));
        for target in ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "//etc/passwd", "/none.js"] {
            assert!(
                text(&format!("GET {target} HTTP/1.1")).starts_with("HTTP/1.1 404 "),
                "{target}"
            );
        }
        assert!(text("POST / HTTP/1.1").starts_with("HTTP/1.1 405 "));
        assert!(text("").starts_with("HTTP/1.1 405 "));
    }

    #[test]
    fn webassembly_is_packed_for_browsers_that_unpack_it() {
        let smallest = text("GET /ebbtide.wasm HTTP/1.1\r\nAccept-Encoding: gzip, deflate, br");
        assert!(smallest.contains("Content-Encoding: br\r\n") && smallest.ends_with("smallest"));
        let packed = text("GET /ebbtide.wasm HTTP/1.1\r\naccept-encoding: gzip, x-br");
        assert!(packed.contains("Content-Encoding: gzip\r\n") && packed.ends_with("packed"));
        let plain = text("GET /ebbtide.wasm HTTP/1.1");
        assert!(plain.contains("application/wasm") && plain.ends_with("plain"));
        assert!(text("HEAD / HTTP/1.1").ends_with("\r\n\r\n"));
    }
}
