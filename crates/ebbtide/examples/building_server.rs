//! A building: typed resources, a sensor, firmware, a slow job, a protected upload, an end in good order.
use ebbtide::server::{AccessLog, Call, Data, Path, Router, State, Subject, get, put};
use ebbtide::{Code, Response, Server};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};
use tokio::{sync::RwLock, time::sleep};

#[derive(Clone, Serialize, Deserialize)]
struct Lamp {
    on: bool,
    level: u8,
}

/// What the building has.
#[derive(Clone, Default)]
pub struct Building {
    lamps: Arc<RwLock<BTreeMap<String, Lamp>>>,
    celsius: Arc<RwLock<f64>>,
    temperature: Subject,
}

async fn lamp(State(b): State<Building>, Path(name): Path<String>) -> Option<Data<Lamp>> {
    b.lamps.read().await.get(&name).cloned().map(Data)
}

async fn switch(State(b): State<Building>, Path(name): Path<String>, lamp: Data<Lamp>) -> Code {
    let before = b.lamps.write().await.insert(name, lamp.0);
    if before.is_some() { Code::CHANGED } else { Code::CREATED }
}

async fn calibrate(State(b): State<Building>) -> Code {
    sleep(Duration::from_secs(5)).await;
    *b.celsius.write().await += 0.1;
    b.temperature.changed();
    Code::CHANGED
}

fn has_key(call: &Call<'_>) -> Result<(), Response> {
    let has = call.query().any(|argument| argument == "key=12345");
    if has { Ok(()) } else { Err(Response::new(Code::UNAUTHORIZED)) }
}

/// All its resources.
pub fn router(building: Building) -> Router {
    let celsius = async |State(b): State<Building>| Data(*b.celsius.read().await);
    let upload = |call: &Call<'_>| (Code::CHANGED, call.payload().len().to_string());
    Router::new()
        .route("/lamps/{name}", get(lamp).put(switch).max_body(1024).attribute("rt", "lamp"))
        .route("/temperature", get(celsius).post(calibrate).observable(&building.temperature))
        .route("/firmware", get(|| vec![7; 200_000]))
        .route("/upload", put(upload).authorize(has_key).max_body(64 << 10))
        .with_state(building)
        .layer(AccessLog)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(router(Building::default()), ["0.0.0.0:5683", "[::]:5683"])?;
    Ok(server.run_until(sleep(Duration::from_secs(3600)), Duration::from_secs(10)).await?)
}
