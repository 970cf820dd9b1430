//! Measures how many HTTP requests a second a server answers on 32 connections. Without arguments it measures a bare
//! hyper server, which answers 60 bytes to anything; `http_rate ADDRESS PATH` measures another server.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CONNECTIONS: usize = 32;
const SPAN: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (address, path) = match (arguments.next(), arguments.next()) {
        (Some(address), Some(path)) => (address.parse()?, path),
        _ => (bare().await?, "/".to_owned()),
    };
    let count = Arc::new(AtomicU64::new(0));
    for _ in 0..CONNECTIONS {
        tokio::spawn(ask(
            address,
            format!("GET {path} HTTP/1.1\r\nHost: g\r\n\r\n"),
            count.clone(),
        ));
    }
    tokio::time::sleep(SPAN).await;
    println!("{} requests a second", count.load(Ordering::Relaxed) / SPAN.as_secs());
    Ok(())
}

/// Starts the bare server.
async fn bare() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let answer = async |_| {
                    Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::from_static(
                        &[b'x'; 60],
                    ))))
                };
                http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await
            });
        }
    });
    Ok(address)
}

/// Sends the request again and again, each after the answer to the one before.
async fn ask(address: SocketAddr, request: String, count: Arc<AtomicU64>) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = vec![0; 4096];
    loop {
        stream.write_all(request.as_bytes()).await?;
        // A short answer comes in one piece, its body behind the empty line.
        let read = stream.read(&mut answer).await?;
        let head = answer.get(..read).unwrap_or_default();
        if !head.starts_with(b"HTTP/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(head).into_owned()));
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}
