//! `ebbtide serve --dir`: files in blocks, versions, formats, and nothing outside of the folder.

use crate::common::{Serving, refuse};
use ebbtide::{Client, Code, ContentFormat, Request, Response};
use ebbtide_core::wire::OptionNumber;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

/// A folder `public` with files, beside it a secret; and a server of the folder.
struct Site {
    folder: TempDir,
    server: Serving,
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Site {
    fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = folder.path().join("public");
        std::fs::create_dir_all(public.join("rooms")).unwrap();
        std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
        std::fs::write(public.join("hello.txt"), "hello").unwrap();
        std::fs::write(public.join("rooms/kitchen 1.json"), "{\"t\":22.3}").unwrap();
        std::fs::write(public.join(".hidden"), "hidden").unwrap();
        let mut arguments = vec!["--dir", public.to_str().unwrap()];
        arguments.extend(flags);
        let server = Serving::start(&arguments);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async { Client::new() });
        Self { folder, server, runtime, client }
    }

    fn public(&self) -> std::path::PathBuf {
        self.folder.path().join("public")
    }

    fn ask(&self, request: Request) -> Response {
        self.runtime.block_on(self.client.request(request)).unwrap()
    }

    fn get(&self, path: &str) -> Response {
        self.ask(Request::get(self.server.uri(path)).unwrap())
    }

    fn put(&self, path: &str, body: &str) -> Request {
        Request::put(self.server.uri(path)).unwrap().payload(body.to_owned())
    }
}

fn etag(response: &Response) -> Vec<u8> {
    response.options().get(OptionNumber::ETAG).expect("an ETag").value.to_vec()
}

#[test]
fn files_come_with_the_format_of_their_extension_and_their_version() {
    let site = Site::new(&[]);
    let hello = site.get("/hello.txt");
    assert_eq!((hello.code(), hello.text().as_ref()), (Code::CONTENT, "hello"));
    assert_eq!(hello.content_format(), Some(ContentFormat::TEXT));
    assert_eq!(site.get("/rooms/kitchen%201.json").content_format(), Some(ContentFormat::JSON));
    let again = Request::get(site.server.uri("/hello.txt")).unwrap();
    let again = site.ask(again.option(OptionNumber::ETAG, &etag(&hello)));
    assert_eq!((again.code(), again.body().len()), (Code::VALID, 0));
    assert_eq!(etag(&again), etag(&hello));
    std::fs::write(site.public().join("hello.txt"), "hello again").unwrap();
    assert_ne!(etag(&site.get("/hello.txt")), etag(&hello));
    let wanted = Request::get(site.server.uri("/hello.txt")).unwrap().accept(ContentFormat::CBOR);
    assert_eq!(site.ask(wanted).code(), Code::NOT_ACCEPTABLE);
    assert_eq!(site.get("/missing.txt").code(), Code::NOT_FOUND);
    assert_eq!(site.get("/hello.txt/below").code(), Code::NOT_FOUND);
}

#[test]
fn a_long_file_comes_block_by_block_without_being_kept() {
    let mut site = Site::new(&["--metrics", "127.0.0.1:0"]);
    let body: Vec<u8> = (0..300_000_u32).map(|n| (n / 7) as u8).collect();
    std::fs::write(site.public().join("long"), &body).unwrap();
    assert!(site.get("/long").body() == &body);
    std::fs::write(site.public().join("short.png"), &body[..5000]).unwrap();
    let small = site.ask(Request::get(site.server.uri("/short.png")).unwrap().block_size(64));
    assert!(small.body() == &body[..5000], "in blocks that the client prefers");
    assert_eq!(small.content_format(), Some(ContentFormat(23)));
    std::fs::write(site.public().join("empty"), "").unwrap();
    assert_eq!((site.get("/empty").code(), site.get("/empty").body().len()), (Code::CONTENT, 0));
    let metrics = site.server.after("metrics at ");
    let text = http_get(&metrics);
    assert!(text.contains("\nebbtide_block_bytes 0\n"), "{text}");
}

fn http_get(url: &str) -> String {
    use std::io::{Read, Write};
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_folder_is_listed_as_links() {
    let site = Site::new(&[]);
    for path in ["", "/", "/.well-known/core"] {
        let list = site.get(path);
        assert_eq!(list.content_format(), Some(ContentFormat::LINK_FORMAT), "{path}");
        assert_eq!(list.text(), "</hello.txt>;ct=0;sz=5,</rooms/>", "{path}");
    }
    for path in ["/rooms", "/rooms/"] {
        assert_eq!(site.get(path).text(), "</rooms/kitchen%201.json>;ct=50;sz=10", "{path}");
    }
}

/// The bytes that a segment of a URI stands for.
fn percent_decoded(segment: &str) -> Vec<u8> {
    let mut parts = segment.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(part[2..].bytes());
    }
    bytes
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let site = Site::new(&["--writable"]);
    let outside = site.folder.path().join("secret.txt");
    symlink(&outside, site.public().join("link.txt")).unwrap();
    symlink(site.folder.path(), site.public().join("up")).unwrap();
    symlink("../secret.txt", site.public().join("relative.txt")).unwrap();
    symlink("hello.txt", site.public().join("inside.txt")).unwrap();
    let attempts = [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2Fsecret.txt",
        "/rooms/../../secret.txt",
        "/rooms/..%2f..%2fsecret.txt",
        "/./hello.txt",
        "//hello.txt",
        "/%2Fetc%2Fpasswd",
        "/rooms%2fkitchen%201.json",
        "/..%5csecret.txt",
        "/hello.txt%00",
        "/link.txt",
        "/relative.txt",
        "/up/secret.txt",
        "/up/public/hello.txt",
        "/.hidden",
        "/%2ehidden",
    ];
    // Segment by segment: a client of ours resolves dot segments before it asks.
    let segments = |request: Request, path: &str| {
        path[1..].split('/').fold(request, |request, segment| {
            request.option(OptionNumber::URI_PATH, &percent_decoded(segment))
        })
    };
    let root = || site.server.uri("");
    for path in attempts {
        let got = site.ask(segments(Request::get(root()).unwrap(), path));
        assert!(!got.is_success(), "GET {path}: {} {}", got.code(), got.text());
        let put = Request::put(root()).unwrap().payload("overwritten");
        let put = site.ask(segments(put, path));
        // To replace a link is to replace what is in the folder, not what it leads to.
        let replaces_link = matches!(path, "/link.txt" | "/relative.txt");
        assert!(replaces_link || !put.is_success(), "PUT {path}: {}", put.code());
        let deleted = site.ask(segments(Request::delete(root()).unwrap(), path));
        assert!(replaces_link || !deleted.is_success(), "DELETE {path}: {}", deleted.code());
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(site.public().join(".hidden")).unwrap(), "hidden");
    assert_eq!(site.get("/inside.txt").text(), "hello", "a link within the folder is followed");
    let listed = site.get("/").text().into_owned();
    assert!(!listed.contains("secret") && !listed.contains("</up"), "{listed}");
}

#[test]
fn a_folder_is_read_only_unless_it_is_said_to_be_writable() {
    let site = Site::new(&[]);
    assert_eq!(site.ask(site.put("/new.txt", "x")).code(), Code::METHOD_NOT_ALLOWED);
    let delete = Request::delete(site.server.uri("/hello.txt")).unwrap();
    assert_eq!(site.ask(delete).code(), Code::METHOD_NOT_ALLOWED);
    assert!(site.public().join("hello.txt").exists());
    refuse(&["serve", "--writable"], &["--dir"]);
    refuse(&["serve", "--dir", "no-such-folder"], &["--dir no-such-folder"]);
}

#[test]
fn a_writable_folder_takes_files_whole_and_gives_them_up() {
    let site = Site::new(&["--writable"]);
    let created = site.ask(site.put("/rooms/new.txt", "first"));
    assert_eq!(created.code(), Code::CREATED);
    let file = site.public().join("rooms/new.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "first");
    let long = "0123456789".repeat(20_000);
    let changed = site.ask(site.put("/rooms/new.txt", &long));
    assert_eq!(changed.code(), Code::CHANGED);
    assert_eq!(etag(&changed), etag(&site.get("/rooms/new.txt")));
    assert!(std::fs::read_to_string(&file).unwrap() == long);
    // As a copy of the request would, which may come late.
    let copied = site.ask(site.put("/rooms/new.txt", &long));
    assert_eq!((copied.code(), etag(&copied)), (Code::CHANGED, etag(&changed)));
    let other = site.ask(site.put("/rooms/new.txt", &long[1..]));
    assert_ne!(etag(&other), etag(&changed));
    assert_eq!(site.ask(site.put("/rooms", "x")).code(), Code::METHOD_NOT_ALLOWED);
    assert_eq!(site.ask(site.put("/nowhere/x.txt", "x")).code(), Code::NOT_FOUND);
    let delete = || Request::delete(site.server.uri("/rooms/new.txt")).unwrap();
    assert_eq!(site.ask(delete()).code(), Code::DELETED);
    assert!(!file.exists());
    assert_eq!(site.ask(delete()).code(), Code::DELETED, "RFC 7252 section 5.8.4");
    let left: Vec<_> = names(&site.public().join("rooms"));
    assert_eq!(left, ["kitchen 1.json"], "nothing is left of what was written aside");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_long_list_comes_block_by_block_with_one_version() {
    let site = Site::new(&[]);
    for number in 0..2000 {
        std::fs::write(site.public().join(format!("rooms/{number:04}.txt")), "x").unwrap();
    }
    let list = site.get("/rooms");
    let text = list.text();
    let links: Vec<_> = text.split(',').collect();
    assert_eq!(links.len(), 2001);
    assert_eq!(links[0], "</rooms/0000.txt>;ct=0;sz=1");
    assert!(links.is_sorted());
    let known = Request::get(site.server.uri("/rooms")).unwrap();
    let known = site.ask(known.option(OptionNumber::ETAG, &etag(&list)));
    assert_eq!((known.code(), known.body().len()), (Code::VALID, 0));
    std::fs::remove_file(site.public().join("rooms/0000.txt")).unwrap();
    assert!(site.get("/rooms").text().starts_with("</rooms/0001.txt>"));
}

#[test]
fn links_in_a_circle_are_not_found() {
    let site = Site::new(&[]);
    symlink("circle", site.public().join("circle")).unwrap();
    assert_eq!(site.get("/circle").code(), Code::NOT_FOUND);
    assert_eq!(site.get("/circle/x").code(), Code::NOT_FOUND);
}

#[test]
fn durable_changes_are_answered_alike() {
    let site = Site::new(&["--writable", "--durable"]);
    for (body, code) in [("one", Code::CREATED), ("two", Code::CHANGED), ("two", Code::CHANGED)] {
        assert_eq!(site.ask(site.put("/rooms/new.txt", body)).code(), code, "{body}");
        assert_eq!(site.get("/rooms/new.txt").text(), body);
    }
    assert_eq!(site.ask(site.put("/top.txt", "x")).code(), Code::CREATED);
    let delete = Request::delete(site.server.uri("/top.txt")).unwrap();
    assert_eq!(site.ask(delete).code(), Code::DELETED);
    refuse(&["serve", "--dir", ".", "--durable"], &["--writable"]);
}

#[test]
fn preconditions_keep_a_file_from_being_overwritten() {
    let site = Site::new(&["--writable"]);
    let version = etag(&site.get("/hello.txt"));
    let put = |number, value: &[u8]| site.ask(site.put("/hello.txt", "new").option(number, value));
    assert_eq!(put(OptionNumber::IF_NONE_MATCH, &[]).code(), Code::PRECONDITION_FAILED);
    assert_eq!(put(OptionNumber::IF_MATCH, &[1, 2, 3]).code(), Code::PRECONDITION_FAILED);
    assert_eq!(site.get("/hello.txt").text(), "hello");
    assert_eq!(put(OptionNumber::IF_MATCH, &version).code(), Code::CHANGED);
    assert_eq!(put(OptionNumber::IF_MATCH, &version).code(), Code::PRECONDITION_FAILED);
    assert_eq!(put(OptionNumber::IF_MATCH, &[]).code(), Code::CHANGED, "any version");
    let absent = site.put("/absent.txt", "x").option(OptionNumber::IF_MATCH, &[]);
    assert_eq!(site.ask(absent).code(), Code::PRECONDITION_FAILED);
    assert_eq!(names(&site.public()).len(), 3);
}

#[test]
fn files_come_over_tcp_as_well() {
    let mut site = Site::new(&["--bind", "coap+tcp://127.0.0.1:0", "--writable"]);
    let address = site.server.after("serving at coap+tcp://");
    let uri = |path: &str| format!("coap+tcp://{address}{path}");
    // More than a block, and less than a message over TCP may have.
    let large = "0123456789".repeat(5000);
    let put = Request::put(uri("/large.txt")).unwrap().payload(large.clone());
    assert_eq!(site.ask(put).code(), Code::CREATED);
    assert_eq!(site.ask(Request::get(uri("/large.txt")).unwrap()).text(), large);
    assert_eq!(site.get("/large.txt").text(), large, "the same over UDP");
    let outside = site.ask(Request::get(uri("/%2e%2e/secret.txt")).unwrap());
    assert_ne!(outside.text(), "secret");
}
