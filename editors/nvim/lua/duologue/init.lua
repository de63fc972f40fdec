--- A chat with language models in Neovim, over `duologue rpc`. `:help duologue` describes it.
local M = {}

--- Changes what `:help duologue-setup` lists. Not needed otherwise.
function M.setup(values)
  local why = require("duologue.config").set(values)
  if why then
    vim.notify("duologue: " .. why, vim.log.levels.ERROR)
  end
end

return M
