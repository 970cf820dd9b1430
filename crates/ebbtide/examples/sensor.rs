//! Recipe 2, a sensor that is observed: the state is in a store, and a task that measures says when it has
//! changed.
//!
//! `cargo run -p ebbtide --example sensor`

use ebbtide::server::{Data, Path, Router, State, Subject, get};
use ebbtide::{Client, Server};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// What a room's sensor has measured.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Reading {
    celsius: f64,
}

type Store = Arc<RwLock<BTreeMap<String, Reading>>>;

/// Asked by clients, and by the server for each notification. `Data` is JSON or CBOR, as the client wants it.
async fn show(State(store): State<Store>, Path(room): Path<String>) -> Option<Data<Reading>> {
    store.read().await.get(&room).cloned().map(Data)
}

async fn measure(store: Store, rooms: Subject) {
    for tenth in 0.. {
        let celsius = 20.0 + f64::from(tenth) / 10.0;
        store.write().await.insert("kitchen".into(), Reading { celsius });
        // Notifies only the observers of the kitchen.
        rooms.changed_at("/rooms/kitchen");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// Observes the kitchen until there were so many states.
pub async fn run(count: usize) -> Result<Vec<Reading>, Box<dyn Error>> {
    let store = Store::default();
    // Whatever happens meanwhile, an observer gets at most one notification in 50 ms.
    let rooms = Subject::new().at_most_every(Duration::from_millis(50));
    let router = Router::new()
        .route("/rooms/{room}", get(show).observable(&rooms))
        .with_state(store.clone());
    let server = Server::bind(router, ["127.0.0.1:0"])?;
    let uri = format!("coap://{}/rooms/kitchen", server.local_addrs()[0]);
    tokio::spawn(server.run());
    store.write().await.insert("kitchen".into(), Reading { celsius: 19.9 });
    let measuring = tokio::spawn(measure(store, rooms));

    let mut readings = Vec::new();
    let mut states = Client::new().observe(&*uri).await?;
    while readings.len() < count
        && let Some(state) = states.next().await
    {
        readings.push(state?.error_for_status()?.data()?);
    }
    // Tells the server; dropping it would do, too, at the next notification.
    states.cancel().await?;
    measuring.abort();
    Ok(readings)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for reading in run(5).await? {
        println!("{reading:?}");
    }
    Ok(())
}
