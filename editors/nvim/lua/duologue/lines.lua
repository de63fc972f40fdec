--- Makes lines of the chunks of a pipe: a chunk may end anywhere, also within a character.
local M = {}
M.__index = M

--- Far above what a frame needs (an answer, a result with an image); a longer line is dropped, not collected.
M.LINE_BYTES_MAX = 64 * 1024 * 1024

--- `on_line` gets each line without its line feed, `on_overlong` is called once for each line that is dropped.
function M.new(on_line, on_overlong)
  return setmetatable({ on_line = on_line, on_overlong = on_overlong, pieces = {}, bytes = 0 }, M)
end

function M:feed(chunk)
  local from = 1
  while true do
    local at = chunk:find("\n", from, true)
    if not at then
      break
    end
    self:add(chunk:sub(from, at - 1))
    self:finish()
    from = at + 1
  end
  if from <= #chunk then
    self:add(chunk:sub(from))
  end
end

function M:add(piece)
  self.bytes = self.bytes + #piece
  if self.bytes > M.LINE_BYTES_MAX then
    self.pieces = {}
  else
    self.pieces[#self.pieces + 1] = piece
  end
end

function M:finish()
  local line = self.bytes <= M.LINE_BYTES_MAX and table.concat(self.pieces)
  self.pieces, self.bytes = {}, 0
  if line then
    self.on_line(line)
  else
    self.on_overlong()
  end
end

return M
