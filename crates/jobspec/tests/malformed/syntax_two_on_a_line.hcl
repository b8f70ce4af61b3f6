job "web" {
  priority = 1 all_at_once = true
}
