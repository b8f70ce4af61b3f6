//! A stand-in for a plugin of Nomad's protocol: a driver of plain processes, with faults, for tests.
//!
//! [`main`] is the whole program; it is a process of its own, as plugins are. [`Options`] are its arguments. Files
//! in the directory of `--control` are faults that a test switches on and off, see [`control`]. Tasks are
//! processes that outlive the plugin and write their exit code to a file, so that a recovery finds it.
//!
//! It is written from the protocol's messages and shares only those with the agent.

mod base;
pub mod control;
mod decode;
mod driver;
mod options;
mod tasks;

use std::process::ExitCode;
use std::sync::Arc;

use driver_plugin::handshake::COOKIE;
use driver_plugin::wire::base::base_plugin_server::BasePluginServer;
use driver_plugin::wire::drivers::driver_server::DriverServer;
use driver_plugin::wire::go_plugin::grpc_controller_server::GrpcControllerServer;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

pub use options::Options;

use crate::base::StandIn;

/// Runs the plugin until it is asked to end.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    if std::env::var(COOKIE.0).as_deref() != Ok(options.cookie.as_str()) {
        eprintln!("this program is a plugin: the agent starts it");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.and_then(|runtime| runtime.block_on(serve(options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> std::io::Result<()> {
    match options.handshake.as_str() {
        "silent" => std::future::pending().await,
        "exit" => {
            eprintln!("panic: cannot go on");
            std::process::exit(3);
        }
        "garbage" => println!("hello, world"),
        "long" => println!("{}", "x".repeat(1 << 20)),
        "endless" => loop {
            print!("{}", "x".repeat(4 << 10));
        },
        "tcp" => println!("1|2|tcp|127.0.0.1:1|grpc"),
        "tls" => println!("1|2|unix|/tmp/x|grpc|MIIB"),
        "old" => println!("1|1|unix|/tmp/x|netrpc"),
        _ => return answer(options).await,
    }
    std::future::pending().await
}

async fn answer(options: Options) -> std::io::Result<()> {
    let directory = std::env::var_os("PLUGIN_UNIX_SOCKET_DIR").map(std::path::PathBuf::from);
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    let path = directory.join(format!("plugin{}", std::process::id()));
    let listener = UnixListener::bind(&path)?;
    println!("1|2|unix|{}|grpc|", path.display());
    eprintln!(
        r#"{{"@level":"info","@message":"the stand-in listens","@module":"stand-in","pid":{}}}"#,
        std::process::id()
    );
    let stand_in = Arc::new(StandIn::new(options));
    let ended = Arc::clone(&stand_in);
    let served = Server::builder()
        .add_service(BasePluginServer::from_arc(Arc::clone(&stand_in)))
        .add_service(DriverServer::from_arc(Arc::clone(&stand_in)))
        .add_service(GrpcControllerServer::from_arc(stand_in))
        .serve_with_incoming(UnixListenerStream::new(listener));
    tokio::select! {
        served = served => served.map_err(std::io::Error::other)?,
        () = ended.ended.notified() => {}
    }
    // Best effort: a socket without its process does no harm.
    let _ = std::fs::remove_file(path);
    Ok(())
}
