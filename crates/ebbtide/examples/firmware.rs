//! Recipe 3, firmware: a server that reads a file block by block, a client that writes one, says how far it
//! is, and goes on after an interruption where it was.
//!
//! `cargo run -p ebbtide --example firmware`

use ebbtide::server::{Router, file, get};
use ebbtide::{Client, Request, Server};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// Fetches into `path` what is not there yet, at most `limit` bytes of it. True if it is complete.
async fn fetch(uri: &str, path: &Path, limit: u64) -> Result<bool, Box<dyn Error>> {
    let client = Client::new();
    let mut target = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
    let there = target.metadata()?.len();
    // Each block has this long, not all of them together.
    let request = Request::get(uri)?.timeout(Duration::from_secs(30));
    // The version of what is there stands beside it: another version begins anew.
    let version = path.with_extension("etag");
    let known = std::fs::read(&version).ok();
    let mut download = client.download_from(request.clone(), there).await?;
    if there > 0 && download.etag() != known.as_deref() {
        download = client.download(request).await?;
    }
    std::fs::write(&version, download.etag().unwrap_or_default())?;
    target.set_len(download.offset())?;
    target.seek(SeekFrom::Start(download.offset()))?;
    while download.offset() < limit {
        let Some(bytes) = download.chunk().await? else { return Ok(true) };
        target.write_all(&bytes)?;
        let size = download.size().unwrap_or_default();
        eprint!("\r{} of {size} bytes", download.offset());
    }
    Ok(false)
}

/// Fetches a file in two parts.
pub async fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    let image: Vec<u8> = (0..200_000_u32).map(|n| (n / 7) as u8).collect();
    File::create(folder.join("image.bin"))?.write_all(&image)?;
    let router = Router::new().route("/firmware", get(file(folder.join("image.bin"))));
    let server = Server::bind(router, ["127.0.0.1:0"])?;
    let uri = format!("coap://{}/firmware", server.local_addrs()[0]);
    tokio::spawn(server.run());

    let target = folder.join("device.bin");
    assert!(!fetch(&uri, &target, 50_000).await?, "the first half only");
    // Here the device loses its power.
    assert!(fetch(&uri, &target, u64::MAX).await?);
    assert_eq!(std::fs::read(&target)?, image);
    eprintln!();
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("firmware-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = run(&folder).await;
    std::fs::remove_dir_all(&folder)?;
    done
}
