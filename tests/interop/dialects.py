"""The APIs with which agents call a model: the chat completions and the responses of OpenAI, the messages of
Anthropic, and Gemini. A script speaks chat completions; requests in other APIs are translated into that one, and its
answers back into the agent's own."""

import json

NAME = "scripted"
# The reported usage of every answer.
TOKENS = 1


class ChatCompletions:
    @staticmethod
    def is_for(path):
        return path.endswith("/chat/completions")

    @staticmethod
    def asked(request):
        return request

    @staticmethod
    def answer(request, message):
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS}
        told = {"id": "chatcmpl-1", "created": 1, "model": NAME}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return whole(told | {"object": "chat.completion", "choices": [choice], "usage": usage})

        def chunk(delta, reason=None):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return told | {"object": "chat.completion.chunk", "choices": [choice]}

        chunks = []
        if not message.get("tool_calls"):
            chunks.append(chunk({"role": "assistant", "content": message["content"]}))
        for call in message.get("tool_calls", []):
            # The arguments of a call come in two pieces.
            first, rest = pieces(call["function"]["arguments"])
            started = call | {"index": 0, "function": call["function"] | {"arguments": first}}
            chunks.append(chunk({"role": "assistant", "tool_calls": [started]}))
            chunks.append(chunk({"tool_calls": [{"index": 0, "function": {"arguments": rest}}]}))
        chunks.append(chunk({}, reason) | {"usage": usage})
        return events([(None, it) for it in chunks], "data: [DONE]\n\n")


class Messages:
    """Anthropic's."""

    @staticmethod
    def is_for(path):
        return path.endswith("/v1/messages")

    @staticmethod
    def asked(request):
        tools = [tool(it["name"]) for it in request.get("tools", []) if "name" in it]
        messages = []
        for said in request["messages"]:
            content = said["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if block["type"] == "tool_result":
                    messages.append({"role": "tool", "content": block.get("content", "")})
                else:
                    messages.append({"role": said["role"], "content": block.get("text", "")})
        return {"tools": tools, "messages": messages}

    @staticmethod
    def answer(request, message):
        calls = message.get("tool_calls", [])
        blocks = [{"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
                   "input": json.loads(call["function"]["arguments"])} for call in calls]
        blocks = blocks or [{"type": "text", "text": message["content"]}]
        reason = "tool_use" if calls else "end_turn"
        told = {"id": "msg_1", "type": "message", "role": "assistant", "model": NAME,
                "stop_reason": reason, "stop_sequence": None, "content": blocks,
                "usage": {"input_tokens": TOKENS, "output_tokens": TOKENS}}
        if not request.get("stream"):
            return whole(told)
        started = told | {"content": [], "stop_reason": None}
        said = [{"type": "message_start", "message": started}]
        for number, block in enumerate(blocks):
            if block["type"] == "text":
                empty, key, kind = block | {"text": ""}, "text", "text_delta"
                parts = pieces(block["text"])
            else:
                empty, key, kind = block | {"input": {}}, "partial_json", "input_json_delta"
                parts = pieces(json.dumps(block["input"]))
            said.append({"type": "content_block_start", "index": number, "content_block": empty})
            said += [{"type": "content_block_delta", "index": number, "delta": {"type": kind, key: it}}
                     for it in parts]
            said.append({"type": "content_block_stop", "index": number})
        ended = {"stop_reason": reason, "stop_sequence": None}
        said.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": TOKENS}})
        said.append({"type": "message_stop"})
        return events([(it["type"], it) for it in said])


class Responses:
    """OpenAI's other one."""

    @staticmethod
    def is_for(path):
        return path.endswith("/responses")

    @staticmethod
    def asked(request):
        # Tools of one server may be grouped, with a name of their own.
        named = [it for group in request.get("tools", []) for it in group.get("tools", [group])]
        tools = [tool(it["name"]) for it in named if "name" in it]
        messages = []
        for item in request["input"] if isinstance(request["input"], list) else []:
            if item["type"] == "function_call_output":
                messages.append({"role": "tool", "content": item["output"]})
            elif item["type"] == "message":
                text = "".join(part.get("text", "") for part in item["content"])
                messages.append({"role": item["role"], "content": text})
        return {"tools": tools, "messages": messages}

    @staticmethod
    def answer(request, message):
        groups = {it["name"]: group["name"] for group in request.get("tools", [])
                  for it in group.get("tools", [])}
        items = []
        for call in message.get("tool_calls", []):
            name = call["function"]["name"]
            item = {"type": "function_call", "id": "fc_1", "call_id": call["id"], "name": name,
                    "arguments": call["function"]["arguments"], "status": "completed"}
            items.append(item | ({"namespace": groups[name]} if name in groups else {}))
        said = {"type": "output_text", "text": message["content"], "annotations": []}
        items = items or [{"type": "message", "id": "msg_1", "role": "assistant",
                           "status": "completed", "content": [said]}]
        usage = {"input_tokens": TOKENS, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens": TOKENS, "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": 2 * TOKENS}
        started = {"id": "resp_1", "object": "response", "created_at": 1, "model": NAME,
                 "status": "in_progress", "output": [], "usage": None}
        ended = started | {"status": "completed", "output": items, "usage": usage}
        if not request.get("stream"):
            return whole(ended)
        said = [{"type": "response.created", "response": started}]
        for number, item in enumerate(items):
            said.append({"type": "response.output_item.added", "output_index": number, "item": item})
            said.append({"type": "response.output_item.done", "output_index": number, "item": item})
        said.append({"type": "response.completed", "response": ended})
        return events([(it["type"], it) for it in said])


class Gemini:
    @staticmethod
    def is_for(path):
        return path.endswith((":generateContent", ":streamGenerateContent"))

    @staticmethod
    def asked(request):
        declared = [it for group in request.get("tools", []) for it in group.get("functionDeclarations", [])]
        messages = []
        for said in request["contents"]:
            for part in said["parts"]:
                if "functionResponse" in part:
                    answer = json.dumps(part["functionResponse"]["response"])
                    messages.append({"role": "tool", "content": answer})
                else:
                    messages.append({"role": said["role"], "content": part.get("text", "")})
        return {"tools": [tool(it["name"]) for it in declared], "messages": messages}

    @staticmethod
    def answer(request, message):
        calls = message.get("tool_calls", [])
        parts = [{"functionCall": {"name": call["function"]["name"],
                                   "args": json.loads(call["function"]["arguments"])}} for call in calls]
        parts = parts or [{"text": message["content"]}]
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        usage = {"promptTokenCount": TOKENS, "candidatesTokenCount": TOKENS, "totalTokenCount": 2 * TOKENS}
        told = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": NAME}
        return events([(None, told)]) if request.get("stream") else whole(told)


DIALECTS = [ChatCompletions, Messages, Responses, Gemini]


def tool(name):
    return {"type": "function", "function": {"name": name}}


def pieces(text):
    return [text[:5], text[5:]]


def whole(answer):
    return "application/json", json.dumps(answer)


def events(said, end=""):
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(it)}\n\n" for name, it in said]
    return "text/event-stream", "".join(lines) + end
