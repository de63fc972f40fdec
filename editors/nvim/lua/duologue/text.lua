--- Text that grows, and what may be shown of a text that somebody else wrote.
local M = {}
M.__index = M

function M.new(text)
  return setmetatable({ pieces = { text or "" }, bytes = #(text or "") }, M)
end

--- The whole text. Pieces are joined here, and not with each patch, which would copy a long text each time.
function M:all()
  if #self.pieces > 1 then
    self.pieces = { table.concat(self.pieces) }
  end
  return self.pieces[1]
end

--- Writes `piece` after the first `offset` bytes: a Lua string counts bytes, as the protocol does. What is there
--- after them is gone, so a patch may come twice. Returns whether the text has only grown.
function M:patch(offset, piece)
  local has_grown = offset == self.bytes
  if not has_grown then
    self:set(self:all():sub(1, offset))
  end
  self.pieces[#self.pieces + 1] = piece
  self.bytes = self.bytes + #piece
  return has_grown
end

--- Returns whether this is another text.
function M:set(text)
  if self.bytes == #text and self:all() == text then
    return false
  end
  self.pieces, self.bytes = { text }, #text
  return true
end

--- Characters by whose presence in a message a text counts as said: a message has a long text cut.
local SAID_CHARS = 100

--- Letters of all alphabets in lower case. A text with a NUL would be no string for Vim.
local function folded(text)
  return vim.fn.tolower((text:gsub("%z", " ")))
end

--- The text of an error: its message, and in parentheses what that does not have of the detail. After the class of a
--- failure these are parts, up to a rest that is said; a detail without a class is one reason.
function M.of_error(failure)
  local message, detail = failure.message or "", failure.detail or ""
  local lower = folded(message)
  local function is_said(text)
    return lower:find(vim.fn.strcharpart(folded(text), 0, SAID_CHARS), 1, true) ~= nil
  end
  local class = detail:match("^([a-z_]+): ") or detail:match("^([a-z_]+):$")
  local rest = vim.trim(class and detail:sub(#class + 2) or detail)
  local added = {}
  while not is_said(rest) do
    local from, to = rest:find(": ", 1, true)
    local part, more = rest, ""
    if class and from then
      part, more = vim.trim(rest:sub(1, from - 1)), vim.trim(rest:sub(to + 1))
    end
    if not is_said(part) then
      added[#added + 1] = part
    end
    rest = more
  end
  if #added == 0 then
    return message
  end
  return ("%s (%s%s)"):format(message, class and class .. ": " or "", table.concat(added, ": "))
end

--- Lines for a buffer. A carriage return has no use there.
function M.lines(text)
  return vim.split((text:gsub("\r", "")), "\n", { plain = true })
end

--- Code points that a reader can't see and that may change what is read: those that reorder text, joiners, tags.
local function is_hidden(code)
  return (code >= 0x200b and code <= 0x200f)
    or (code >= 0x202a and code <= 0x202e)
    or (code >= 0x2060 and code <= 0x206f)
    or code == 0xad
    or code == 0x61c
    or code == 0xfeff
    or (code >= 0xe0000 and code <= 0xe007f)
end

--- The arguments of a call as a person reads them before deciding: what can't be seen is shown as an escape.
function M.visible(text)
  local shown = text:gsub("[%z\1-\8\11-\31\127]", function(char)
    return ("\\u{%x}"):format(char:byte())
  end)
  return (shown:gsub("[\194-\244][\128-\191]+", function(char)
    local code = vim.fn.char2nr(char)
    return is_hidden(code) and ("\\u{%x}"):format(code) or nil
  end))
end

--- Text that is valid UTF-8: a buffer may have any bytes, and JSON can't. Bytes that are none are U+FFFD.
function M.utf8(text)
  local parts, from = {}, 1
  while from <= #text do
    local next_bad = text:find("[\128-\255]", from)
    if not next_bad then
      break
    end
    parts[#parts + 1] = text:sub(from, next_bad - 1)
    local char = text:match("^[\194-\223][\128-\191]", next_bad)
      or text:match("^\224[\160-\191][\128-\191]", next_bad)
      or text:match("^[\225-\236\238\239][\128-\191][\128-\191]", next_bad)
      or text:match("^\237[\128-\159][\128-\191]", next_bad)
      or text:match("^\240[\144-\191][\128-\191][\128-\191]", next_bad)
      or text:match("^[\241-\243][\128-\191][\128-\191][\128-\191]", next_bad)
      or text:match("^\244[\128-\143][\128-\191][\128-\191]", next_bad)
    parts[#parts + 1] = char or "\239\191\189"
    from = next_bad + #(char or " ")
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

--- The first characters of a text, on one line.
function M.short(text, width)
  local line = M.visible(M.utf8(text)):gsub("%s+", " ")
  if vim.fn.strchars(line) <= width then
    return line
  end
  return vim.fn.strcharpart(line, 0, width - 1) .. "…"
end

--- A Markdown fence that no line of `text` ends.
function M.fence(text)
  local longest = 2
  for run in text:gmatch("`+") do
    longest = math.max(longest, #run)
  end
  return ("`"):rep(longest + 1)
end

return M
