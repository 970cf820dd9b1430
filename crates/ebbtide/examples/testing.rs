//! Recipe 8, tests of handlers without a socket.
//!
//! `cargo run -p ebbtide --example testing`

use ebbtide::server::{Data, HandlerError, Path, Router, State, TestServer, get};
use ebbtide::{Code, ContentFormat, Request};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Lamp {
    level: u8,
}

type Lamps = Arc<Mutex<BTreeMap<String, Lamp>>>;

fn show(State(lamps): State<Lamps>, Path(name): Path<String>) -> Option<Data<Lamp>> {
    lamps.lock().ok()?.get(&name).cloned().map(Data)
}

fn dim(
    State(lamps): State<Lamps>,
    Path(name): Path<String>,
    Data(lamp): Data<Lamp>,
) -> Result<Code, HandlerError> {
    if lamp.level > 100 {
        return Err(HandlerError::new(Code::BAD_REQUEST, "the level is 100 at most"));
    }
    let mut lamps = lamps.lock().map_err(|_| HandlerError::code(Code::INTERNAL_SERVER_ERROR))?;
    Ok(if lamps.insert(name, lamp).is_some() { Code::CHANGED } else { Code::CREATED })
}

/// The program's router: its tests use the same.
fn router() -> Router {
    Router::new().route("/lamps/{name}", get(show).put(dim)).with_state(Lamps::default())
}

/// In a program of yours this is a `#[tokio::test]`.
pub async fn a_lamp_that_was_dimmed_says_so() -> Result<(), Box<dyn Error>> {
    let server = TestServer::new(router());
    let uri = "coap://test/lamps/kitchen";
    assert_eq!(server.request(Request::get(uri)?).await.code(), Code::NOT_FOUND);

    let put = |level| Ok::<_, Box<dyn Error>>(Request::put(uri)?.cbor(&Lamp { level })?);
    assert_eq!(server.request(put(30)?).await.code(), Code::CREATED);
    let refused = server.request(put(101)?).await;
    assert_eq!((refused.code(), &*refused.text()), (Code::BAD_REQUEST, "the level is 100 at most"));

    let shown = server.request(Request::get(uri)?.accept(ContentFormat::JSON)).await;
    assert_eq!(shown.json::<Lamp>()?, Lamp { level: 30 });
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    a_lamp_that_was_dimmed_says_so().await
}
