//! A server of the fleet's service that only sends each prompt back, as a piece of text in a frame: what a stream of
//! deltas costs with nothing around it.
#![expect(clippy::print_stdout, reason = "prints the address, as a node does")]

use duologue::protocol::any::Any;
use duologue::protocol::proto::chat::ChatTextPatch;
use duologue::protocol::proto::fleet::converse_request::Message;
use duologue::protocol::proto::fleet::fleet_server::{Fleet, FleetServer};
use duologue::protocol::proto::fleet::{
    Attach, ConverseRequest, DeleteRequest, DeleteResponse, ExportRequest, ForkRequest,
    ForkResponse, GetRequest, ListRequest, ListResponse, ServerInfoRequest, ServerInfoResponse,
    Session,
};
use duologue::protocol::proto::rpc::rpc_line::Frame;
use duologue::protocol::proto::rpc::rpc_request_line::Request as Asked;
use duologue::protocol::proto::rpc::{HelloFrame, RpcLine, UiEventFrame};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

struct Echo;

type Lines = BoxStream<'static, Result<RpcLine, Status>>;

fn answer(request: Result<ConverseRequest, Status>) -> Result<RpcLine, Status> {
    let frame = match request?.message {
        Some(Message::Request(line)) => {
            let Some(Asked::Submit(submit)) = line.request else {
                return Err(Status::invalid_argument("a submit"));
            };
            let patch = ChatTextPatch { text: submit.prompt, ..ChatTextPatch::default() };
            let name = "ChatTextPatch".to_owned();
            let payload = Some(Any::ChatTextPatch(Box::new(patch)));
            Frame::UiEvent(UiEventFrame { ordinal: 1, name, payload })
        }
        Some(Message::Attach(_)) | None => Frame::Hello(HelloFrame::default()),
    };
    Ok(RpcLine { version: 1, frame: Some(frame), ..RpcLine::default() })
}

fn no<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("it only echoes"))
}

#[tonic::async_trait]
impl Fleet for Echo {
    type ConverseStream = Lines;
    type WatchStream = Lines;
    type ExportStream = Lines;

    async fn converse(
        &self,
        request: Request<Streaming<ConverseRequest>>,
    ) -> Result<Response<Lines>, Status> {
        Ok(Response::new(request.into_inner().map(answer).boxed()))
    }

    async fn watch(&self, _: Request<Attach>) -> Result<Response<Lines>, Status> {
        no()
    }

    async fn server_info(
        &self,
        _: Request<ServerInfoRequest>,
    ) -> Result<Response<ServerInfoResponse>, Status> {
        no()
    }

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        no()
    }

    async fn get(&self, _: Request<GetRequest>) -> Result<Response<Session>, Status> {
        no()
    }

    async fn delete(&self, _: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        no()
    }

    async fn export(&self, _: Request<ExportRequest>) -> Result<Response<Lines>, Status> {
        no()
    }

    async fn fork(&self, _: Request<ForkRequest>) -> Result<Response<ForkResponse>, Status> {
        no()
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let router = Routes::new(FleetServer::new(Echo)).into_axum_router();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new());
            builder.http2().max_concurrent_streams(1024);
            builder.serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}
