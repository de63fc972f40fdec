--- Draws a view in a buffer. What did not change is not touched: a reader's cursor, scroll and folds stay.
local Blocks = require("duologue.blocks")

local api = vim.api
local M = {}
M.__index = M

local NAMESPACE = api.nvim_create_namespace("duologue-transcript")
--- Frames come faster than anybody reads.
local DRAW_MS = 40
--- Longer lines are not highlighted: syntax and Treesitter take seconds for them.
local SYNTAX_BYTES_MAX = 20000

function M.new(buffer, view, title)
  local self = setmetatable({ buffer = buffer, view = view, title = title, blocks = {}, rows = {} }, M)
  local options = vim.bo[buffer]
  options.buftype, options.bufhidden, options.swapfile = "nofile", "hide", false
  -- What a model writes must not set options.
  options.modeline = false
  -- An answer is not to be undone; without this each patch would be a step of undo.
  options.undolevels = -1
  options.filetype = "markdown"
  options.synmaxcol = 2000
  options.modifiable = false
  self:redraw()
  return self
end

--- Draws soon, and once for all that comes until then.
function M:schedule()
  if not self.is_scheduled then
    self.is_scheduled = true
    vim.defer_fn(function()
      self.is_scheduled = false
      self:draw()
      -- The winbar, for what is not a part of the text.
      vim.cmd.redrawstatus({ bang = true })
    end, DRAW_MS)
  end
end

local function windows(buffer)
  return vim.fn.win_findbuf(buffer)
end

--- The windows whose cursor is in the last line: they follow the answer. Not while a selection is made or a command
--- is written there, which may be a search.
local function followers(buffer)
  local last, mode = api.nvim_buf_line_count(buffer), api.nvim_get_mode().mode
  return vim.tbl_filter(function(window)
    local is_busy = window == api.nvim_get_current_win() and not mode:match("^[ni]")
    return not is_busy and api.nvim_win_get_cursor(window)[1] == last
  end, windows(buffer))
end

function M:is_valid()
  return api.nvim_buf_is_valid(self.buffer) and api.nvim_buf_is_loaded(self.buffer)
end

function M:draw()
  local dirty = self.view:take_dirty()
  if not self:is_valid() or next(dirty) == nil then
    return
  end
  if api.nvim_buf_get_changedtick(self.buffer) ~= self.tick then
    -- Somebody else has written in it, or it was loaded again.
    return self:redraw()
  end
  local following = followers(self.buffer)
  self:write(function()
    self:apply(dirty)
  end)
  self:follow(following)
end

function M:follow(following)
  local last = api.nvim_buf_line_count(self.buffer)
  for _, window in ipairs(following) do
    api.nvim_win_set_cursor(window, { last, 0 })
  end
end

function M:write(act)
  local options = vim.bo[self.buffer]
  options.modifiable = true
  act()
  options.modifiable = false
  options.modified = false
  self.tick = api.nvim_buf_get_changedtick(self.buffer)
end

--- Draws everything anew.
function M:redraw()
  self.view:take_dirty()
  local following = followers(self.buffer)
  self.blocks, self.rows = {}, {}
  self:write(function()
    api.nvim_buf_clear_namespace(self.buffer, NAMESPACE, 0, -1)
    api.nvim_buf_set_lines(self.buffer, 0, -1, false, { "# " .. self.title, "" })
    for _, id in ipairs(self.view.order) do
      self:append(self.view.entities[id])
    end
  end)
  for _, window in ipairs(windows(self.buffer)) do
    self:fold_all(window)
  end
  self:follow(following)
end

function M:apply(dirty)
  for id, how in pairs(dirty) do
    if how == "gone" and self.rows[id] then
      self:erase(id)
    end
  end
  for _, id in ipairs(self.view.order) do
    local how, entity = dirty[id], self.view.entities[id]
    if how and not self.rows[id] then
      self:append(entity)
    elseif how == "grown" and self.rows[id].prefix and entity.status == "streaming" then
      self:grow(entity)
    elseif how then
      self:replace(entity)
    end
  end
end

--- The row of a block's first line, from 0. Most of what changes is near the end.
function M:start(id)
  local row = api.nvim_buf_line_count(self.buffer)
  for at = #self.blocks, 1, -1 do
    row = row - self.blocks[at].count
    if self.blocks[at].id == id then
      return row, at
    end
  end
end

function M:append(entity)
  local last = self.blocks[#self.blocks]
  local built = Blocks.build(entity, last and last.kind)
  local row = api.nvim_buf_line_count(self.buffer)
  local block = { id = entity.id, kind = entity.kind, before = last and last.kind, count = 0 }
  self.blocks[#self.blocks + 1] = block
  self.rows[entity.id] = block
  api.nvim_buf_set_lines(self.buffer, row, row, false, built.lines)
  self:remember(block, built, entity)
  for _, window in ipairs(windows(self.buffer)) do
    self:fold(window, block)
  end
  self:mark(block, row, built)
end

function M:remember(block, built, entity)
  block.count, block.head, block.prefix, block.folds = #built.lines, built.head, built.prefix, built.folds
  block.is_open = built.is_open
  block.drawn = entity.text.bytes
  if vim.iter(built.lines):any(function(line)
    return #line > SYNTAX_BYTES_MAX
  end) then
    self:stop_highlighting()
  end
end

function M:stop_highlighting()
  pcall(vim.treesitter.stop, self.buffer)
  vim.bo[self.buffer].syntax = "OFF"
end

function M:erase(id)
  local row, at = self:start(id)
  local block = table.remove(self.blocks, at)
  self.rows[id] = nil
  if block.mark then
    api.nvim_buf_del_extmark(self.buffer, NAMESPACE, block.mark)
  end
  api.nvim_buf_set_lines(self.buffer, row, row + block.count, false, {})
end

--- Adds what is new at the end of the text, before the blank last line.
function M:grow(entity)
  local block = self.rows[entity.id]
  local row = self:start(entity.id) + block.count - 2
  local column = #api.nvim_buf_get_lines(self.buffer, row, row + 1, false)[1]
  local tail = entity.text:all():sub(block.drawn + 1):gsub("\r", "")
  local lines = vim.split(tail, "\n", { plain = true })
  for at = 2, #lines do
    lines[at] = block.prefix .. lines[at]
  end
  api.nvim_buf_set_text(self.buffer, row, column, row, column, lines)
  block.count = block.count + #lines - 1
  block.drawn = entity.text.bytes
  if column + #lines[1] > SYNTAX_BYTES_MAX then
    self:stop_highlighting()
  end
end

--- Makes the lines `old`, which begin in `row`, the lines `new`; those that are equal are left alone. Lines are set,
--- appended and deleted one by one with these functions because `nvim_buf_set_lines` takes folds and marks of the lines
--- that it replaces away.
function M:write_changed(row, old, new)
  local from, old_to, new_to = 1, #old, #new
  while from <= old_to and from <= new_to and old[from] == new[from] do
    from = from + 1
  end
  while old_to >= from and new_to >= from and old[old_to] == new[new_to] do
    old_to, new_to = old_to - 1, new_to - 1
  end
  local both = math.min(old_to, new_to)
  -- A NUL is a line feed within a line of Vim's.
  local lines = vim.tbl_map(function(line)
    return (line:gsub("%z", "\n"))
  end, vim.list_slice(new, from, new_to))
  if both >= from then
    vim.fn.setbufline(self.buffer, row + from, vim.list_slice(lines, 1, both - from + 1))
  end
  if new_to > both then
    vim.fn.appendbufline(self.buffer, row + math.max(both, from - 1), vim.list_slice(lines, both - from + 2))
  elseif old_to > both then
    vim.fn.deletebufline(self.buffer, row + math.max(both, from - 1) + 1, row + old_to)
  end
end

--- Draws a block that is there again.
function M:replace(entity)
  local block = self.rows[entity.id]
  local row = self:start(entity.id)
  local built = Blocks.build(entity, block.before)
  local old, new = api.nvim_buf_get_lines(self.buffer, row, row + block.count, false), built.lines
  self:write_changed(row, old, new)
  local was_open = block.is_open
  self:remember(block, built, entity)
  self:mark(block, row, built)
  if (was_open or false) ~= (built.is_open or false) then
    self:set_open(block, row)
  end
end

function M:mark(block, row, built)
  if block.mark then
    api.nvim_buf_del_extmark(self.buffer, NAMESPACE, block.mark)
    block.mark = nil
  end
  if built.highlight then
    local options = { line_hl_group = built.highlight }
    block.mark = api.nvim_buf_set_extmark(self.buffer, NAMESPACE, row + block.head, 0, options)
  end
end

--- Folds are made by hand, once for each block and window: lines that come later, before the blank last line, are
--- then a part of the fold, also while somebody writes in insert mode, in which other folds are not updated.
function M:fold(window, block)
  if #block.folds == 0 then
    return
  end
  local row = self:start(block.id)
  api.nvim_win_call(window, function()
    for _, fold in ipairs(block.folds) do
      vim.cmd(("silent! keepjumps %d,%dfold"):format(row + fold[1], row + fold[2]))
      if block.is_open then
        vim.cmd(("silent! %dfoldopen"):format(row + fold[1]))
      end
    end
  end)
end

function M:set_open(block, row)
  for _, window in ipairs(windows(self.buffer)) do
    api.nvim_win_call(window, function()
      vim.cmd(("silent! %d%s"):format(row + block.head + 1, block.is_open and "foldopen" or "foldclose"))
    end)
  end
end

--- For a window that shows the buffer anew.
function M:fold_all(window)
  api.nvim_win_call(window, function()
    vim.cmd("silent! normal! zE")
  end)
  for _, block in ipairs(self.blocks) do
    self:fold(window, block)
  end
end

--- The entity whose block has a row, which counts from 1.
function M:entity_at(row)
  local last = api.nvim_buf_line_count(self.buffer)
  for at = #self.blocks, 1, -1 do
    last = last - self.blocks[at].count
    if row > last then
      return self.view.entities[self.blocks[at].id]
    end
  end
end

return M
