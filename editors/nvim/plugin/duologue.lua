-- Defines the commands; everything else is loaded when one of them is used.
if vim.g.loaded_duologue then
  return
end
vim.g.loaded_duologue = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.api.nvim_echo({ { "duologue needs Neovim 0.10 or later, and this one is older.", "WarningMsg" } }, true, {})
  return
end

local group = vim.api.nvim_create_augroup("duologue-read", { clear = true })
-- :edit with the name of a conversation.
vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = "duologue://*",
  callback = function(event)
    require("duologue.windows").read(event.buf)
  end,
})
-- What :mksession has written gives buffers their names and reads nothing.
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = group,
  callback = function()
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_is_loaded(buffer) and vim.startswith(vim.api.nvim_buf_get_name(buffer), "duologue://") then
        require("duologue.windows").read(buffer)
      end
    end
  end,
})

vim.api.nvim_create_user_command("Duologue", function(call)
  require("duologue.commands").run(call)
end, {
  nargs = "*",
  range = true,
  desc = "Talk to a language model",
  complete = function(...)
    return require("duologue.commands").complete(...)
  end,
})

vim.api.nvim_create_user_command("DuologueReplace", function(call)
  require("duologue.replace").run(call)
end, {
  nargs = "+",
  range = true,
  desc = "Replace the selection by the answer to an instruction",
})
