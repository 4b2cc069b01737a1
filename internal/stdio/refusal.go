package stdio

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A detail tells a client what was wrong with its message.
type detail struct {
	fault.Object
	Limit    int64 `json:"limit_bytes,omitempty"`
	Received int64 `json:"received_bytes,omitempty"`
}

// refusal is the reply, with an id where it is valid, that says what is wrong.
func refusal(id jsonrpc.ID, code int64, d detail) *jsonrpc.Response {
	d.Status = "error"
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: d.Message, Data: mustMarshal(d)}}
}

// invalid is the reply to what is no valid request.
func invalid(id jsonrpc.ID, message string) *jsonrpc.Response {
	return refusal(id, jsonrpc.CodeInvalidRequest, detail{Object: fault.Object{Code: fault.MCPInvalidRequest, Message: message}})
}

// malformed is the reply to what is not JSON.
func malformed() *jsonrpc.Response {
	return refusal(jsonrpc.ID{}, jsonrpc.CodeParseError, detail{Object: fault.Object{Code: fault.MCPInvalidRequest,
		Message: "the message is not valid JSON; send each message whole, on a line of its own"}})
}

// unencodable is the reply where the server's own could not be encoded.
func unencodable(id jsonrpc.ID) *jsonrpc.Response {
	return refusal(id, jsonrpc.CodeInternalError, detail{Object: fault.Object{Code: fault.Internal,
		Message: "internal error; the server's log has the details"}})
}

// tooLarge is the reply to a message over the limit. A tool call gets a tool
// result, which the model sees.
func tooLarge(id jsonrpc.ID, method string, size, limit int64) *jsonrpc.Response {
	o := fault.Object{Status: "error", Code: fault.LimitExceeded, Message: fmt.Sprintf(
		"Incoming MCP request payload exceeds CONDUIT_MAX_PAYLOAD_SIZE_BYTES (%d bytes): this one has %d; send less in one call, such as fewer entries or a long text in parts", limit, size)}
	if id.IsValid() && method == toolsCall {
		return toolError(id, o)
	}
	return refusal(id, jsonrpc.CodeInvalidRequest, detail{o, limit, size})
}

// tooLong is the reply in the place of one over the limit. cl may be nil.
func tooLong(id jsonrpc.ID, cl *call, size, limit int64) *jsonrpc.Response {
	o := fault.Object{Status: "error", Code: fault.LimitExceeded, Message: fmt.Sprintf(
		"the response of %d bytes exceeds CONDUIT_MAX_RESPONSE_BYTES (%d); ask for less in one call", size, limit)}
	if cl != nil && cl.method == toolsCall {
		return toolError(id, o)
	}
	return refusal(id, jsonrpc.CodeInternalError, detail{Object: o})
}

// toolError is a tool result that says what is wrong.
func toolError(id jsonrpc.ID, o fault.Object) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Result: mustMarshal(&mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: string(mustMarshal(o))}}, IsError: true})}
}

// mustMarshal encodes what cannot fail to be encoded.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func mustEncode(r *jsonrpc.Response) []byte {
	b, err := jsonrpc.EncodeMessage(r)
	if err != nil {
		panic(err)
	}
	return b
}
