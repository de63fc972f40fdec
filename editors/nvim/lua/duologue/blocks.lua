--- How a message or a tool call looks: lines of Markdown. Pure.
local Text = require("duologue.text")

local M = {}

--- What is shown of a result. The arguments of a call are shown whole: a person decides by them.
local RESULT_LINES_MAX, RESULT_BYTES_MAX = 400, 64 * 1024
--- A longer line of arguments or of a result goes on in the next row: Neovim draws very long lines slowly.
local ROW_BYTES_MAX = 1000
local HEAD_WIDTH = 100
--- A longer text that goes along with a prompt is folded.
local QUOTE_LINES_MAX = 8
--- Arguments that are shorter stay on one line.
local PRETTY_BYTES_MIN = 80

--- JSON with a line for each member, in the order and with the spelling of the model.
function M.pretty(json)
  if #json < PRETTY_BYTES_MIN then
    return json
  end
  local out, depth, from = {}, 0, 1
  local function line(mark)
    out[#out + 1] = mark .. "\n" .. ("  "):rep(depth)
  end
  while from <= #json do
    local text = json:match('^"[^"\\]*"', from) or json:match("^[^%[%]{}:,\"]+", from)
    local char = text or json:sub(from, from)
    if char == '"' then -- A string with escapes: up to the quote that none of them is.
      local to = from + 1
      while to <= #json and json:sub(to, to) ~= '"' do
        to = to + (json:sub(to, to) == "\\" and 2 or 1)
      end
      char = json:sub(from, to)
      out[#out + 1] = char
    elseif char == "{" or char == "[" then
      local empty = json:match("^[%[{]%s*[%]}]", from)
      if empty then
        char = empty
        out[#out + 1] = empty
      else
        depth = depth + 1
        line(char)
      end
    elseif char == "}" or char == "]" then
      depth = math.max(0, depth - 1)
      line("")
      out[#out + 1] = char
    elseif char == "," then
      line(",")
    elseif char == ":" then
      out[#out + 1] = ": "
    else
      out[#out + 1] = vim.trim(char)
    end
    from = from + #char
  end
  return table.concat(out)
end

--- Cuts rows at characters.
local function rows(text)
  local all = {}
  for _, line in ipairs(Text.lines(text)) do
    while #line > ROW_BYTES_MAX do
      local to = ROW_BYTES_MAX
      while to > 1 and line:byte(to + 1) >= 0x80 and line:byte(to + 1) < 0xc0 do
        to = to - 1
      end
      all[#all + 1] = line:sub(1, to)
      line = line:sub(to + 1)
    end
    all[#all + 1] = line
  end
  return all
end

local function fenced(lines, language)
  local fence = Text.fence(table.concat(lines, "\n"))
  local all = { fence .. language }
  vim.list_extend(all, lines)
  all[#all + 1] = fence
  return all
end

local function result_rows(result)
  local shown = rows(Text.visible(result:sub(1, RESULT_BYTES_MAX)))
  local left = #result > RESULT_BYTES_MAX and ("… %d bytes more"):format(#result - RESULT_BYTES_MAX) or nil
  if #shown > RESULT_LINES_MAX then
    left = ("… %d lines more"):format(#shown - RESULT_LINES_MAX)
    shown = vim.list_slice(shown, 1, RESULT_LINES_MAX)
  end
  shown[#shown + 1] = left
  return shown
end

local function tool_head(entity)
  local state = entity.is_asked and "waits for a decision"
    or (entity.result_status == "error" and "error")
    or entity.status
  local arguments = Text.short(entity.text:all(), HEAD_WIDTH):gsub("`", "'")
  return ("**%s** `%s` · %s"):format(Text.short(entity.name or "tool", 64), arguments, state)
end

local function tool(entity)
  local lines = { tool_head(entity) }
  vim.list_extend(lines, fenced(rows(Text.visible(M.pretty(entity.text:all()))), "json"))
  if entity.result then
    vim.list_extend(lines, fenced(result_rows(entity.result), ""))
  end
  local highlight = entity.is_asked and "DuologueQuestion" or (entity.result_status == "error" and "DuologueError")
  return { lines = lines, is_folded = true, is_open = entity.is_asked, highlight = highlight }
end

local function thinking(entity)
  local body = Text.lines(entity.text:all())
  local is_growing = entity.status == "streaming"
  local head = is_growing and "> **Thinking**" or ("> **Thought**, %d line%s"):format(#body, #body == 1 and "" or "s")
  local lines = vim.iter(body)
    :map(function(line)
      return "> " .. line
    end)
    :totable()
  return { lines = vim.list_extend({ head }, lines), is_folded = true, prefix = "> " }
end

--- The fence that an answer has left open, as one that was stopped may, or nil.
local function open_fence(lines)
  local open
  for _, line in ipairs(lines) do
    local mark, rest = line:match("^ ? ? ?([`~][`~][`~]+)(.*)")
    if mark and not open then
      open = mark
    elseif mark and mark:sub(1, 1) == open:sub(1, 1) and #mark >= #open and rest:match("^%s*$") then
      open = nil
    end
  end
  return open
end

local function note_lines(entity)
  local note = entity.note ~= "" and entity.note or nil
  if entity.status == "stopped" or entity.status == "failed" then
    return { "", ("*(%s%s)*"):format(entity.status, note and ": " .. Text.short(note, 300) or "") }
  end
  return note and { "", ("*(%s)*"):format(Text.short(note, 300)) } or {}
end

local function message(entity)
  local lines = Text.lines(entity.text:all())
  if entity.status ~= "streaming" then
    lines[#lines + 1] = open_fence(lines)
    vim.list_extend(lines, note_lines(entity))
  end
  return { lines = lines, prefix = "" }
end

--- The fenced texts of a prompt that are long, with the line that says where they are from: pairs of their first and
--- last line.
local function quotes(lines)
  local all, first, fence = {}, nil, nil
  for at, line in ipairs(lines) do
    local mark = line:match("^(```+)")
    if mark and not fence then
      first, fence = (lines[at - 2] or ""):match(":$") and lines[at - 1] == "" and at - 2 or at, mark
    elseif fence and line == fence then
      if at - first > QUOTE_LINES_MAX then
        all[#all + 1] = { first, at }
      end
      fence = nil
    end
  end
  return all
end

local function prompt(entity)
  local block = message(entity)
  block.quotes = quotes(block.lines)
  return block
end

local function of_the_editor(sign, highlight)
  return function(entity)
    local lines = Text.lines(Text.visible(entity.text:all()))
    lines[1] = sign .. lines[1]
    return { lines = lines, highlight = highlight }
  end
end

local BUILD = {
  user = prompt,
  assistant = message,
  thinking = thinking,
  tool = tool,
  error = of_the_editor("**Error:** ", "DuologueError"),
  notice = of_the_editor("", "DuologueNotice"),
}

local function is_answer(kind)
  return kind == "assistant" or kind == "thinking" or kind == "tool"
end

--- The block of an entity, which comes after one of the kind `before`: `lines`, of which the first `head` come
--- before the text and the last one is blank; `prefix` if text can be added at its end; `folds`, the first and the
--- last line of each.
function M.build(entity, before)
  local block = BUILD[entity.kind](entity)
  local head = {}
  if entity.kind == "user" then
    head = { "## You", "" }
  elseif is_answer(entity.kind) and not is_answer(before) then
    head = { "## Model", "" }
  elseif entity.kind == "assistant" and before ~= "assistant" then
    -- A closed fold has its blank line within it.
    head = { "" }
  end
  block.head = #head
  block.lines = vim.list_extend(head, block.lines)
  block.lines[#block.lines + 1] = ""
  block.folds = block.is_folded and { { block.head + 1, #block.lines } }
    or vim.tbl_map(function(quote)
      return { quote[1] + block.head, quote[2] + block.head }
    end, block.quotes or {})
  return block
end

return M
