//! Asks fifty buildings for all that they have, at once: `cargo run -p ebbtide --example building_client --
//! coap://127.0.0.1:5683 ..`.

use ebbtide::{Client, Code, Error, Request};
use futures_util::future::{join_all, try_join_all};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Lamp {
    on: bool,
    level: u8,
}

/// Everything that one building is asked for; how many bytes came back.
async fn ask(client: &Client, base: &str) -> Result<usize, Error> {
    let lamp = Lamp { on: true, level: 80 };
    let uri = format!("{base}/lamps/hall");
    client.request(Request::put(&*uri)?.cbor(&lamp)?).await?.error_for_status()?;
    let shown: Lamp = client.get(&*uri).await?.error_for_status()?.data()?;
    assert_eq!(shown, lamp);

    let firmware = client.get(format!("{base}/firmware")).await?.error_for_status()?;
    let refused = client.put(format!("{base}/upload"), vec![0; 100_000]).await?;
    assert_eq!(refused.code(), Code::UNAUTHORIZED);
    let stored = client.put(format!("{base}/upload?key=12345"), vec![0; 60_000]).await?;
    assert_eq!(stored.error_for_status()?.text(), "60000");
    Ok(firmware.body().len())
}

/// The slow job: one that is waited for, one with too little time, one that is cancelled.
async fn calibrate(client: &Client, base: &str) -> Result<(), Error> {
    let job = || Request::post(format!("{base}/temperature"));
    let impatient = client.request(job()?.timeout(Duration::from_millis(500))).await;
    assert!(impatient.is_err_and(|error| error.is_timeout()));
    drop(tokio::time::timeout(Duration::from_millis(100), client.request(job()?)).await);
    client.request(job()?.timeout(Duration::from_secs(60))).await?.error_for_status()?;
    Ok(())
}

/// The temperatures until there were `count`.
async fn watch(client: &Client, base: &str, count: usize) -> Result<Vec<f64>, Error> {
    let mut states = client.observe(format!("{base}/temperature")).await?;
    let mut seen = Vec::new();
    while seen.len() < count
        && let Some(state) = states.next().await
    {
        seen.push(state?.error_for_status()?.data()?);
    }
    Ok(seen)
}

/// Asks all of them at once; how many bytes of firmware came back.
pub async fn run(bases: &[String]) -> Result<usize, Error> {
    let client = Client::new();
    let watching = join_all(bases.iter().map(|base| watch(&client, base, 2)));
    let slow = try_join_all(bases.iter().map(|base| calibrate(&client, base)));
    let asked = try_join_all(bases.iter().map(|base| ask(&client, base)));
    let (states, slow, asked) = tokio::join!(watching, slow, asked);
    slow?;
    assert!(states.into_iter().all(|states| states.is_ok_and(|states| states.len() == 2)));
    Ok(asked?.into_iter().sum())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    println!("{} bytes of firmware", run(&std::env::args().skip(1).collect::<Vec<_>>()).await?);
    Ok(())
}
