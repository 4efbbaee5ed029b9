"""How mail is written and leaves. What is to be sent is ``tickets.models.MailDelivery``."""
