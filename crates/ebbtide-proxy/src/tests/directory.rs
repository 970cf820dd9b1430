//! Registrations and look-ups, as devices and clients make them.

use super::serve;
use crate::{Directory, DirectoryConfig};

use ebbtide::server::{Call, Router, StateFile, Verify, get};
use ebbtide::{
    Client, ClientConfig, Code, ContentFormat, OptionNumber, Request, Response, Server,
    ServerConfig,
};
use ebbtide_core::wire::{Content, Message, MessageId, Opt, Token, Type};
use std::net::SocketAddr;
use std::time::Duration;

fn open() -> SocketAddr {
    serve(Directory::open(DirectoryConfig::new()).unwrap().router())
}

async fn register(client: &Client, directory: SocketAddr, query: &str, links: &str) -> Response {
    let request = Request::post(format!("coap://{directory}/rd?{query}")).unwrap();
    client
        .request(request.format(ContentFormat::LINK_FORMAT).payload(links.to_owned()))
        .await
        .unwrap()
}

fn location(directory: SocketAddr, created: &Response) -> String {
    assert_eq!(created.code(), Code::CREATED, "{}", created.text());
    let uri: ebbtide::Uri = format!("coap://{directory}/rd").parse().unwrap();
    uri.location(created).unwrap().to_string()
}

async fn found(client: &Client, directory: SocketAddr, query: &str) -> String {
    let found = client.get(format!("coap://{directory}/rd-lookup/{query}")).await.unwrap();
    assert_eq!(
        (found.code(), found.content_format()),
        (Code::CONTENT, Some(ContentFormat::LINK_FORMAT))
    );
    found.text().into_owned()
}

#[tokio::test]
async fn a_registration_is_found_updated_and_removed() {
    let (client, directory) = (Client::new(), open());
    let own = client.get(format!("coap://{directory}/.well-known/core?rt=core.rd*")).await.unwrap();
    for listed in ["</rd>;rt=\"core.rd\";ct=40", "</rd-lookup/ep>;", "</rd-lookup/res>;"] {
        assert!(own.text().contains(listed), "{}", own.text());
    }
    let query = "ep=node1&base=coap://%5B2001:db8:3::123%5D:61616&et=sensor";
    let created = register(&client, directory, query, "</temp>;rt=\"temperature\"").await;
    let location = location(directory, &created);
    let temperature = || found(&client, directory, "res?rt=temperature");
    assert_eq!(temperature().await, "<coap://[2001:db8:3::123]:61616/temp>;rt=\"temperature\"");
    let again = register(&client, directory, query, "</warm>;rt=\"temperature\"").await;
    assert_eq!(self::location(directory, &again), location);
    let changed =
        client.post(format!("{location}?base=coap://192.0.2.1&et=other"), "").await.unwrap();
    assert_eq!(changed.code(), Code::CHANGED);
    assert_eq!(temperature().await, "<coap://192.0.2.1/warm>;rt=\"temperature\"");
    let endpoints = found(&client, directory, "ep?et=other").await;
    assert!(
        endpoints.starts_with("</rd/")
            && endpoints.contains(";ep=\"node1\";base=\"coap://192.0.2.1\"")
    );
    assert_eq!(client.delete(&*location).await.unwrap().code(), Code::DELETED);
    assert_eq!(client.delete(&*location).await.unwrap().code(), Code::NOT_FOUND);
    assert_eq!(client.post(&*location, "").await.unwrap().code(), Code::NOT_FOUND);
    assert_eq!(temperature().await, "");
}

#[tokio::test]
async fn a_device_that_only_names_itself_is_asked_for_its_resources() {
    let directory = open();
    let core =
        Router::new().route("/sen/temp", get(|_: &Call<'_>| "22").attribute("rt", "temperature"));
    let device = Client::serving(core, ClientConfig::new()).unwrap();
    let simple = |query: &str| format!("coap://{directory}/.well-known/rd?{query}");
    let registered = device.post(simple("ep=node1&lt=6000"), "").await.unwrap();
    assert_eq!((registered.code(), registered.text().as_ref()), (Code::CHANGED, ""));
    let listed = found(&device, directory, "res?ep=node1").await;
    let port = listed.strip_prefix("<coap://127.0.0.1:").unwrap().split('/').next().unwrap();
    // It is where the device can be asked.
    let answer = Client::new().get(format!("coap://127.0.0.1:{port}/sen/temp")).await.unwrap();
    assert_eq!(answer.text(), "22");
    for (query, payload) in [("lt=60", ""), ("ep=a&base=coap://b", ""), ("ep=a", "</x>")] {
        let refused = device.post(simple(query), payload).await.unwrap();
        assert_eq!(refused.code(), Code::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn an_address_that_may_be_forged_is_not_asked_for_its_resources() {
    let directory = Directory::open(DirectoryConfig::new()).unwrap();
    let config = ServerConfig::new().verify(Verify::All);
    let server = Server::with_config(directory.router(), config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let paths =
        [&b".well-known"[..], b"rd"].map(|value| Opt { number: OptionNumber::URI_PATH, value });
    let options = [paths[0], paths[1], Opt { number: OptionNumber::URI_QUERY, value: b"ep=a" }];
    let content = Content { code: Code::POST, options: &options, payload: b"" };
    let is_challenged = async |id| {
        let mut buf = [0; 1500];
        let encoded =
            content.encode(&mut buf, Type::Confirmable, MessageId(id), Token::EMPTY).unwrap();
        socket.send_to(&buf[..encoded.len], address).await.unwrap();
        let length = socket.recv(&mut buf).await.unwrap();
        let first = Message::parse(&buf[..length]).unwrap();
        first.code() == Code::UNAUTHORIZED && first.option(OptionNumber::ECHO).is_some()
    };
    assert!(is_challenged(1).await);
    // A device proves its address, and is registered.
    let core = Router::new().route("/t", get(|_: &Call<'_>| "22"));
    let device = Client::serving(core, ClientConfig::new()).unwrap();
    let uri = format!("coap://{address}/.well-known/rd?ep=b");
    assert_eq!(device.post(&*uri, "").await.unwrap().code(), Code::CHANGED);
    // Its address is known to be one at which somebody listens, which says nothing about who sends this.
    assert!(is_challenged(2).await);
}

#[tokio::test]
async fn a_device_whose_list_has_no_end_is_left_after_what_may_be_registered() {
    let directory = open();
    let endless = get(|_: &Call<'_>| Response::content(vec![b'x'; 200_000]));
    let core = Router::new().route("/.well-known/core", endless);
    let device = Client::serving(core, ClientConfig::new()).unwrap();
    let uri = format!("coap://{directory}/.well-known/rd?ep=a");
    let refused = device.post(&*uri, "").await.unwrap();
    // It is the transfer that ends, not the whole body that is refused.
    assert_eq!((refused.code(), refused.text().as_ref()), (Code::BAD_GATEWAY, "TooLarge"));
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_reason_and_changes_nothing() {
    let (client, directory) = (Client::new(), open());
    for (query, links, why) in [
        ("", "</a>", "name the endpoint, as in ep=node1"),
        ("ep=a&lt=0", "</a>", "lt=0 is not a number of seconds"),
        ("ep=a&base=x", "</a>", "base=x is not a URI"),
        ("ep=a", "a", "no <target> in the link at byte 0"),
        ("ep=a", "<a>", "neither a URI nor a path"),
    ] {
        let refused = register(&client, directory, query, links).await;
        assert_eq!(refused.code(), Code::BAD_REQUEST, "{query} {links}");
        assert!(refused.text().contains(why), "{}", refused.text());
    }
    let json = Request::post(format!("coap://{directory}/rd?ep=a")).unwrap();
    let json = client.request(json.format(ContentFormat::JSON).payload("[]")).await.unwrap();
    assert_eq!(json.code(), Code::UNSUPPORTED_CONTENT_FORMAT);
    let json = Request::get(format!("coap://{directory}/rd-lookup/ep")).unwrap();
    let json = client.request(json.accept(ContentFormat::JSON)).await.unwrap();
    assert_eq!(json.code(), Code::NOT_ACCEPTABLE);
    assert_eq!(
        client.get(format!("coap://{directory}/rd-lookup/ep?page=1")).await.unwrap().code(),
        Code::BAD_REQUEST
    );
    assert_eq!(found(&client, directory, "ep").await, "");
}

#[tokio::test]
async fn a_look_up_that_is_observed_reports_what_comes_and_expires() {
    let (client, directory) = (Client::new(), open());
    let uri = format!("coap://{directory}/rd-lookup/res?rt=light");
    let mut lights = Client::new().observe(&*uri).await.unwrap();
    assert_eq!(lights.next().await.unwrap().unwrap().text(), "");
    register(&client, directory, "ep=a&lt=2&base=coap://192.0.2.1", "</east>;rt=light").await;
    assert_eq!(lights.next().await.unwrap().unwrap().text(), "<coap://192.0.2.1/east>;rt=light");
    assert_eq!(lights.next().await.unwrap().unwrap().text(), "");
}

#[tokio::test]
async fn registrations_that_were_acknowledged_survive_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registrations");
    let open = || Directory::open(DirectoryConfig::new().state(StateFile::new(&path))).unwrap();
    let client = Client::new();
    let first = serve(open().router());
    let mut locations = Vec::new();
    for name in ["a", "b", "c"] {
        let created =
            register(&client, first, &format!("ep={name}&base=coap://{name}"), "</x>").await;
        locations.push(location(first, &created));
    }
    assert_eq!(client.delete(&*locations[1]).await.unwrap().code(), Code::DELETED);
    // What is on the disk now is what a power cut leaves: the first one still runs.
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    let second = Directory::open(DirectoryConfig::new().state(StateFile::new(&copy))).unwrap();
    let second = serve(second.router());
    let mut known: Vec<_> =
        found(&client, second, "res").await.split(',').map(str::to_owned).collect();
    known.sort();
    assert_eq!(known, ["<coap://a/x>", "<coap://c/x>"]);
    let moved = locations[0].replace(&first.to_string(), &second.to_string());
    assert_eq!(client.post(format!("{moved}?lt=60"), "").await.unwrap().code(), Code::CHANGED);
}

#[tokio::test]
async fn a_registration_that_cannot_be_stored_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("below").join("registrations");
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let directory = Directory::open(DirectoryConfig::new().state(StateFile::new(&path))).unwrap();
    let directory = serve(directory.router());
    std::fs::remove_dir_all(folder.path().join("below")).unwrap();
    let client = Client::new();
    let refused = register(&client, directory, "ep=a&base=coap://b", "</x>").await;
    assert_eq!(refused.code(), Code::SERVICE_UNAVAILABLE);
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let created = register(&client, directory, "ep=a&base=coap://b", "</x>").await;
    assert_eq!(created.code(), Code::CREATED);
}

#[tokio::test]
async fn a_full_directory_says_so_and_goes_on() {
    let directory = Directory::open(DirectoryConfig::new().max_bytes(8 << 10)).unwrap();
    let directory = serve(directory.router());
    let client = Client::new();
    let mut codes = Vec::new();
    for n in 0..10 {
        let answer = register(&client, directory, &format!("ep={n}&base=coap://b"), "</x>").await;
        codes.push(answer.code());
        if answer.code() != Code::CREATED {
            assert!(answer.options().get_uint(OptionNumber::MAX_AGE) >= Some(1));
        }
    }
    let kept = codes.iter().filter(|code| **code == Code::CREATED).count();
    let refused = codes.iter().filter(|code| **code == Code::SERVICE_UNAVAILABLE).count();
    assert_eq!((kept, refused), (4, 6));
    let listed = tokio::time::timeout(Duration::from_secs(10), found(&client, directory, "ep"));
    assert_eq!(listed.await.unwrap().matches("ep=").count(), 4);
}
