--- What goes along with a prompt: the selection, and buffers.
local Text = require("duologue.text")

local api = vim.api
local M = {}

local function name_of(buffer)
  local name = api.nvim_buf_get_name(buffer)
  return name == "" and "a buffer without a name" or vim.fn.fnamemodify(name, ":~:.")
end

--- The text of lines. A NUL, which a line has as a line feed, is no text.
local function joined(lines)
  return table.concat(
    vim.tbl_map(function(line)
      return (line:gsub("[%z\n]", "\239\191\189"))
    end, lines),
    "\n"
  )
end

--- A text in a fence, with its origin.
local function quoted(origin, text, buffer)
  local fence = Text.fence(text)
  return ("%s:\n\n%s%s\n%s\n%s"):format(origin, fence, vim.bo[buffer].filetype, text, fence)
end

--- Whether the block goes to the ends of its lines: the marks do not say so.
local function is_to_the_ends()
  local view = vim.fn.winsaveview()
  vim.cmd("noautocmd keepjumps normal! gv")
  local wanted = vim.fn.getcurpos()[5]
  vim.cmd("noautocmd normal! \27")
  vim.fn.winrestview(view)
  return wanted == vim.v.maxcol
end

--- The lines of a block from its left column to their ends.
local function to_the_ends(from, to)
  local left = math.min(vim.fn.virtcol("'<", 1)[1], vim.fn.virtcol("'>", 1)[1])
  local lines = {}
  for row = from[2], to[2] do
    local is_there = vim.fn.virtcol({ row, "$" }) > left
    lines[#lines + 1] = is_there and vim.fn.getline(row):sub(vim.fn.virtcol2col(0, row, left)) or ""
  end
  return lines
end

--- The lines of a command's range, or the characters or the block of the selection if the range is `'<,'>`: it counts
--- two numbers, and the selection has these lines.
function M.selection(call)
  local first, last = call.line1, call.line2
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local mode = vim.fn.visualmode()
  if call.range ~= 2 or mode == "" or from[2] ~= first or to[2] ~= last then
    local text = joined(api.nvim_buf_get_lines(0, first - 1, last, false))
    return { kind = "V", from = { 0, first, 1, 0 }, to = { 0, last, 1, 0 }, text = text }
  end
  local is_open = mode == "\22" and is_to_the_ends()
  local lines = is_open and to_the_ends(from, to) or vim.fn.getregion(from, to, { type = mode })
  return { kind = mode, from = from, to = to, text = joined(lines) }
end

--- A selection as a part of a prompt.
function M.quote(selection, buffer)
  local first, last = selection.from[2], selection.to[2]
  local lines = first == last and ("line %d"):format(first) or ("lines %d to %d"):format(first, last)
  return quoted(("%s, %s"):format(name_of(buffer), lines), selection.text, buffer)
end

--- Adds the text of the buffer to a prompt that has `@buffer`, with changes that are not written.
function M.with_buffers(prompt, buffer)
  if not buffer or not (" " .. prompt .. " "):match("[%s(]@buffer[%s.,:;?!)]") then
    return prompt
  end
  local text = joined(api.nvim_buf_get_lines(buffer, 0, -1, false))
  return prompt .. "\n\n" .. quoted(name_of(buffer), text, buffer)
end

return M
