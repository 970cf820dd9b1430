//! Handlers take parts of a request and give anything that becomes a response; layers stand around
//! them.

#![cfg(feature = "serde")]

use ebbtide::server::{
    AccessLog, Authorize, Call, ConcurrencyLimit, Data, ETags, HandlerError, IntoResponse, Json,
    Path, Query, Remote, Router, Server, State, Timeout, get, post, put,
};
use ebbtide::{Client, Code, ContentFormat, Request, Response};
use ebbtide_core::wire::OptionNumber;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Lamp {
    on: bool,
    level: u8,
}

type Lamps = Arc<Mutex<BTreeMap<String, Lamp>>>;

#[derive(Deserialize)]
struct Search {
    level: Option<u8>,
    #[serde(default)]
    on: bool,
}

async fn list(State(lamps): State<Lamps>, Query(search): Query<Search>) -> Json<Vec<String>> {
    let lamps = lamps.lock().unwrap();
    let wanted =
        |lamp: &Lamp| search.level.is_none_or(|level| lamp.level == level) && lamp.on >= search.on;
    Json(lamps.iter().filter(|(_, lamp)| wanted(lamp)).map(|(name, _)| name.clone()).collect())
}

async fn show(State(lamps): State<Lamps>, Path(name): Path<String>) -> Option<Data<Lamp>> {
    lamps.lock().unwrap().get(&name).cloned().map(Data)
}

async fn switch(
    State(lamps): State<Lamps>,
    Path(name): Path<String>,
    Data(lamp): Data<Lamp>,
) -> Result<(Code, Data<Lamp>), HandlerError> {
    if lamp.level > 100 {
        return Err(HandlerError::new(Code::BAD_REQUEST, "the level must be from 0 to 100"));
    }
    let before = lamps.lock().unwrap().insert(name, lamp.clone());
    Ok((if before.is_some() { Code::CHANGED } else { Code::CREATED }, Data(lamp)))
}

async fn fail() -> Result<String, HandlerError> {
    let text = std::fs::read_to_string("/nonexistent/secret")?;
    Ok(text)
}

struct Scene {
    base: String,
    client: Client,
    _server: Server,
}

impl Scene {
    fn new(router: Router) -> Self {
        let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
        let base = format!("coap://{}", server.local_addrs()[0]);
        Self { base, client: Client::new(), _server: server }
    }

    async fn ask(&self, request: Request) -> Response {
        self.client.request(request).await.unwrap()
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    async fn get(&self, path: &str) -> Response {
        self.ask(Request::get(self.at(path)).unwrap()).await
    }

    async fn put(&self, path: &str, body: &[u8], format: ContentFormat) -> Response {
        let request = Request::put(self.at(path)).unwrap();
        self.ask(request.payload(body.to_vec()).format(format)).await
    }
}

fn lamps() -> Scene {
    let router = Router::new()
        .route("/lamps", get(list))
        .route("/lamps/{name}", get(show).put(switch))
        .route("/fail", get(fail))
        .with_state(Lamps::default());
    Scene::new(router)
}

#[tokio::test]
async fn values_come_in_and_go_out_in_the_format_of_the_client() {
    let scene = lamps();
    let json = br#"{"on":true,"level":7}"#;
    let created = scene.put("/lamps/kitchen", json, ContentFormat::JSON).await;
    assert_eq!(created.code(), Code::CREATED);
    assert_eq!(created.content_format(), Some(ContentFormat::JSON));
    assert_eq!(created.body(), &json[..]);
    let mut cbor = Vec::new();
    ciborium::into_writer(&Lamp { on: false, level: 9 }, &mut cbor).unwrap();
    let changed = scene.put("/lamps/kitchen", &cbor, ContentFormat::CBOR).await;
    assert_eq!(changed.code(), Code::CHANGED);
    let accept = |format: ContentFormat| {
        let request = Request::get(scene.at("/lamps/kitchen")).unwrap();
        scene.ask(request.option(OptionNumber::ACCEPT, &[u8::try_from(format.0).unwrap()]))
    };
    let shown = accept(ContentFormat::CBOR).await;
    assert_eq!(shown.content_format(), Some(ContentFormat::CBOR));
    assert_eq!(shown.body(), &cbor);
    assert_eq!(accept(ContentFormat::TEXT).await.code(), Code::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused_with_its_name() {
    let scene = lamps();
    let wrong = scene.put("/lamps/kitchen", b"{\"on\":1}", ContentFormat::JSON).await;
    assert_eq!(wrong.code(), Code::BAD_REQUEST);
    assert!(wrong.text().starts_with("the JSON body is not valid: invalid type"), "{wrong:?}");
    let other = scene.put("/lamps/kitchen", b"on", ContentFormat::TEXT).await;
    assert_eq!(other.code(), Code::UNSUPPORTED_CONTENT_FORMAT);
    let query = scene.get("/lamps?level=300").await;
    assert_eq!(query.code(), Code::BAD_REQUEST);
    assert_eq!(
        query.text(),
        "the query argument 'level' is '300', which is not a whole number from 0 to 255"
    );
    assert_eq!(scene.get("/lamps/hall").await.code(), Code::NOT_FOUND);
}

#[tokio::test]
async fn queries_choose() {
    let scene = lamps();
    for (name, level) in [("a", 1), ("b", 2)] {
        let lamp = serde_json::to_vec(&Lamp { on: level > 1, level }).unwrap();
        scene.put(&format!("/lamps/{name}"), &lamp, ContentFormat::JSON).await;
    }
    for (query, names) in [("", r#"["a","b"]"#), ("?level=1", r#"["a"]"#), ("?on", r#"["b"]"#)] {
        assert_eq!(scene.get(&format!("/lamps{query}")).await.text(), names, "{query}");
    }
}

#[tokio::test]
async fn an_error_without_a_code_is_5_00_and_its_text_stays_here() {
    let failed = lamps().get("/fail").await;
    assert_eq!((failed.code(), failed.body().len()), (Code::INTERNAL_SERVER_ERROR, 0));
}

#[tokio::test]
async fn handlers_have_many_forms() {
    async fn greet(Remote(remote): Remote, name: String) -> String {
        format!("hello {name} from {}", remote.ip())
    }
    fn version(ETags(known): ETags) -> Response {
        if known.contains(&b"v1".to_vec()) {
            Response::new(Code::VALID)
        } else {
            "v1".into_response(None)
        }
    }
    let router = Router::new()
        .route("/borrowed", get(|call: &Call<'_>| call.path()))
        .route("/nothing", get(|| Code::DELETED))
        .route("/version", get(version))
        .route("/later", get(|| async { "later" }))
        .route("/whole", get(|call: Call<'static>| async move { call.remote().ip().to_string() }))
        .route("/greet", post(greet))
        .route("/pair/{a}/{b}", get(|Path((a, b)): Path<(u8, u8)>| (a + b).to_string()))
        .route("/perhaps", put(|value: Option<Json<u8>>| value.map(|Json(value)| Json(value + 1))));
    let scene = Scene::new(router);
    for (path, text) in [
        ("/borrowed", "/borrowed"),
        ("/version", "v1"),
        ("/later", "later"),
        ("/whole", "127.0.0.1"),
        ("/pair/3/4", "7"),
    ] {
        let response = scene.get(path).await;
        assert_eq!((response.code(), &*response.text()), (Code::CONTENT, text), "{path}");
    }
    assert_eq!(scene.get("/nothing").await.code(), Code::DELETED);
    let known = Request::get(scene.at("/version")).unwrap().option(OptionNumber::ETAG, b"v1");
    assert_eq!(scene.ask(known).await.code(), Code::VALID);
    let greeted = Request::post(scene.at("/greet")).unwrap().payload("you");
    assert_eq!(scene.ask(greeted).await.text(), "hello you from 127.0.0.1");
    assert_eq!(scene.put("/perhaps", b"1", ContentFormat::JSON).await.text(), "2");
    assert_eq!(scene.put("/perhaps", b"x", ContentFormat::JSON).await.code(), Code::NOT_FOUND);
    let pair = scene.get("/pair/3/x").await;
    assert_eq!(
        pair.text(),
        "the path parameter 'b' is 'x', which is not a whole number from 0 to 255"
    );
}

#[tokio::test]
async fn routers_are_merged_nested_and_fall_back() {
    let rooms = Router::new()
        .route("/", get(|Path(room): Path<String>| format!("room {room}")))
        .route("/light", get(|| "light"));
    let router = Router::new()
        .route("/", get(|| "root"))
        .nest("/rooms/{room}", rooms.clone())
        .merge(Router::new().route("/other", get(|| "other")))
        .fallback(get(|| (Code::CONTENT, "nothing else")));
    let scene = Scene::new(router);
    for (path, text) in [
        ("", "root"),
        ("/rooms/hall", "room hall"),
        ("/rooms/hall/light", "light"),
        ("/other", "other"),
        ("/a/b", "nothing else"),
    ] {
        assert_eq!(scene.get(path).await.text(), text, "{path}");
    }
}

#[tokio::test]
async fn layers_stand_around_handlers_in_their_order() {
    let allowed = |call: &Call<'_>| {
        let allowed = call.query().any(|argument| argument == "key=1");
        if allowed {
            Ok(())
        } else {
            Err(Response::error(Code::UNAUTHORIZED, "the key is missing"))
        }
    };
    let router = Router::new()
        .route("/open", get(|| "open"))
        .route("/locked", get(|| "locked").layer(Authorize(allowed)))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_secs(600)).await;
                "slow"
            })
            .layer(Timeout(Duration::from_millis(20))),
        )
        .layer(AccessLog)
        .layer(ConcurrencyLimit::new(100));
    let scene = Scene::new(router);
    assert_eq!(scene.get("/open").await.text(), "open");
    let refused = scene.get("/locked").await;
    assert_eq!((refused.code(), &*refused.text()), (Code::UNAUTHORIZED, "the key is missing"));
    assert_eq!(scene.get("/locked?key=1").await.text(), "locked");
    assert_eq!(scene.get("/slow").await.code(), Code::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn beyond_its_limit_a_route_asks_to_come_again() {
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let waiting = gate.clone();
    let handler = move || {
        let (begun, gate) = (begun.clone(), waiting.clone());
        async move {
            begun.send(()).unwrap();
            let _ = gate.acquire().await;
            "done"
        }
    };
    let scene =
        Scene::new(Router::new().route("/one", get(handler).layer(ConcurrencyLimit::new(1))));
    let first = scene.get("/one");
    let second = async {
        has_begun.recv().await.unwrap();
        let refused = scene.get("/one").await;
        assert_eq!(refused.code(), Code::SERVICE_UNAVAILABLE);
        assert_eq!(refused.options().get_uint(OptionNumber::MAX_AGE), Some(1));
        gate.add_permits(2);
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.text(), "done");
    assert_eq!(scene.get("/one").await.text(), "done");
}
