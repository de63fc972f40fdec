/**
 * All messages of the protocol, as protobuf-es makes them.
 *
 * @packageDocumentation
 */

export * from "./messages/duologue/extract/v1/extract_pb.js";
export * from "./messages/duologue/provider/v1/provider_pb.js";
export * from "./messages/duologue/session/v1/session_pb.js";
export * from "./messages/duologue/tools/v1/tools_pb.js";
export * from "./messages/pinocchio/chatapp/frontendtools/v1/frontend_tool_pb.js";
export * from "./messages/pinocchio/chatapp/rpc/v1/rpc_pb.js";
export * from "./messages/pinocchio/chatapp/v1/chat_pb.js";
