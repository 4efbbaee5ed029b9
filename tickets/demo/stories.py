"""What customers of the demo's little company, which rents out coffee machines, write and hear."""

# ruff: noqa: E501  the texts read better in one piece

from dataclasses import dataclass


@dataclass
class Stories:
    """Texts of one team. ``{…}`` are filled with one of ``slots``. Each subject comes with its
    description and tags."""

    customers: list[tuple[str, str]]  # name, address
    subjects: list[tuple[str, str, str]]
    replies: list[str]
    notes: list[str]
    endings: list[str]
    slots: dict[str, list[str]]


def _addresses(names: str, domain: str) -> list[tuple[str, str]]:
    listed = [name.strip() for name in names.split(",")]
    return [(name, f"{name.lower().replace(' ', '.')}@{domain}") for name in listed]


_MACHINES = ["Aroma 2", "Aroma 4", "Barista One", "Crema XL", "Office Brew", "Perla", "Slim S"]
_PLACES = [
    "the kitchen on floor 2",
    "our reception",
    "the Hamburg office",
    "the canteen",
    "the workshop",
    "the showroom in Lyon",
    "building C",
    "the staff room",
]
_PEOPLE = _addresses(
    "Nora Blum, Jonas Ek, Priya Raman, Tomas Silva, Hanna Virtanen, Owen Price, Leila Haddad, "
    "Marek Nowak, Ines Costa, Kofi Mensah, Greta Holm, Pavel Dvorak, Aoife Byrne, Yusuf Demir, "
    "Clara Jansen, Diego Rojas, Mina Sato, Felix Braun, Ruth Cohen, Samir Patel",
    "customers.example",
)

SUPPORT = Stories(
    customers=_PEOPLE,
    subjects=[
        (
            "{machine} shows error E{number}",
            "The {machine} in {place} stopped this morning and shows E{number}. Switching it off and "
            "on helps for one cup, then the error is back.",
            "error,hardware",
        ),
        (
            "Coffee from the {machine} is lukewarm",
            "Since the last filter change the coffee in {place} is barely warm. We have {number} "
            "people here and none of them is amused.",
            "temperature",
        ),
        (
            "How do I add a second grinder profile?",
            "We would like a milder profile for the afternoon on the {machine}. The manual mentions "
            "profiles but not how to add one.",
            "question",
        ),
        (
            "The app does not find our {machine}",
            "The machine in {place} is on the guest network; the app keeps searching and finds "
            "nothing. Bluetooth and location are on.",
            "app,network",
        ),
        (
            "Milk foam collapses at once",
            "The {machine} makes foam that is gone before the cup reaches the table. Same milk as "
            "always. Cleaned twice according to the display.",
            "milk",
        ),
        (
            "Password reset mail never arrives",
            "I asked for a new password {number} minutes ago and again just now. Nothing in the spam "
            "folder either. My account is for {place}.",
            "account",
        ),
        (
            "{machine} is leaking",
            "There is a puddle under the {machine} in {place} every morning, about half a cup. The "
            "tray is in place and the tank is not cracked.",
            "leak,hardware",
        ),
        (
            "Firmware update stuck at {number} %",
            "The update on the {machine} began an hour ago and has been standing still since. Can I "
            "unplug it safely?",
            "firmware",
        ),
        (
            "Please remove a former colleague's access",
            "Our colleague left last week and must not be able to order beans any more. The account "
            "belongs to {place}.",
            "account,security",
        ),
        (
            "Strange noise while grinding",
            "The {machine} rattles as if a screw were in the grinder. We stopped using it to be safe.",
            "hardware,safety",
        ),
        (
            "Decaf counter is wrong",
            "According to the dashboard we drank {number} decafs yesterday. Nobody here drinks decaf.",
            "dashboard",
        ),
        (
            "Descaling reminder will not go away",
            "We descaled the {machine} in {place} twice, and the reminder is still on the display.",
            "display",
        ),
    ],
    replies=[
        "Thank you for the clear description. Could you send us a photo of the display?",
        "Please press and hold the brew button for ten seconds; that resets the heating circuit.",
        "I have ordered the spare part. It should reach you the day after tomorrow.",
        "We can reproduce this here and are working on it. I will write again tomorrow.",
        "Good news: the latest firmware has a fix for exactly this. It installs itself tonight.",
        "Does it also happen with the other water filter? That would help us to narrow it down.",
    ],
    notes=[
        "Same symptom as last month at the other site; probably the batch of pumps from March.",
        "Asked the workshop: they have two in stock.",
        "Customer is patient but has a big event on Friday. Please keep an eye on it.",
        "Logs show the sensor dropping out every 40 seconds.",
    ],
    endings=[
        "All is well again. Thanks for the quick confirmation!",
        "The replacement works; I am closing this. Write at any time if it comes back.",
        "Solved together on the phone: the tank had not been seated properly.",
    ],
    slots={"machine": _MACHINES, "place": _PLACES, "number": ["07", "12", "19", "23", "42", "64"]},
)

BILLING = Stories(
    customers=_addresses(
        "Accounts Nordlicht, Finance Bluebird, Office Almond Tree, Studio Kestrel, Bakery Morgenrot, "
        "Harbour Logistics, Clinic Seeblick, Museum Store, Lakeside School, Cafe Magnolia",
        "accounts.example",
    ),
    subjects=[
        (
            "Invoice {invoice} was charged twice",
            "Our bank statement shows the amount of invoice {invoice} twice, two days apart. Please "
            "return one of them.",
            "invoice,refund",
        ),
        (
            "New billing address from {month}",
            "We are moving and need invoices sent to the new address from {month} on. The old "
            "address may be removed.",
            "address",
        ),
        (
            "Missing VAT number on invoice {invoice}",
            "Our auditor cannot accept invoice {invoice} without our VAT number. Could you send a "
            "corrected one?",
            "invoice,tax",
        ),
        (
            "Question about the {plan} plan",
            "What exactly is included in {plan}? The offer says beans, the contract only machines.",
            "contract,question",
        ),
        (
            "Please cancel the second machine",
            "We no longer need the second machine and would like to stay on {plan} with one. What is "
            "the notice period?",
            "contract,cancellation",
        ),
        (
            "Payment by direct debit failed",
            "You wrote that the debit for {invoice} was returned. Our account is in good order; "
            "please try again.",
            "payment",
        ),
        (
            "Credit note for the broken week",
            "The machine stood still for a week in {month}. We were promised a credit note and have "
            "not seen it yet.",
            "refund",
        ),
        (
            "Cost centre on future invoices",
            "Please print our cost centre on all invoices from {month}.",
            "invoice",
        ),
    ],
    replies=[
        "I have corrected the invoice; the new version is attached to your account.",
        "The amount goes back to you today. Banks usually need two working days.",
        "Thank you, the new address is stored. The next invoice will already show it.",
        "Your notice period is four weeks to the end of a month. Shall I go ahead?",
    ],
    notes=[
        "Checked with the bank: both debits are ours. Returning the second.",
        "Contract is older than the current price list; handle with care.",
        "Third question about this invoice this week.",
    ],
    endings=[
        "Refund has arrived, as the customer confirmed.",
        "Corrected invoice was accepted. Closing.",
    ],
    slots={
        "invoice": ["R-10482", "R-10519", "R-10533", "R-10604", "R-10711", "R-10788", "R-10802"],
        "month": ["January", "March", "May", "July", "September", "November"],
        "plan": ["Daily Cup", "Office Flat", "All You Can Brew"],
    },
)

FIELD = Stories(
    customers=_PEOPLE,
    subjects=[
        (
            "Installation of {machine} at {place}",
            "Please install the new {machine} at {place}. Water and power are ready; parking is "
            "behind the house.",
            "installation",
        ),
        (
            "Yearly maintenance, {machine}",
            "The yearly maintenance of the {machine} at {place} is coming up. Mornings suit us best.",
            "maintenance",
        ),
        (
            "Technician did not come",
            "We waited from eight to twelve for the technician. Nobody came or called. When is the "
            "new appointment?",
            "appointment,complaint",
        ),
        (
            "Pump to be replaced at {place}",
            "Diagnosis by phone: the pump of the {machine} is worn. Take a pump and two seals along.",
            "repair",
        ),
        (
            "Move the {machine} to another floor",
            "The machine has to move up by {number} floors. There is a lift, but no water on the "
            "other side of the room.",
            "move",
        ),
        (
            "Pick up of a returned {machine}",
            "The contract ends and the machine can be picked up at {place}. It is clean and packed.",
            "return",
        ),
        (
            "Water hardness measured: {number} °dH",
            "We measured {number} °dH at {place}. Does the filter have to be set anew?",
            "water",
        ),
    ],
    replies=[
        "Your appointment is on Thursday between nine and eleven. Our technician calls on the way.",
        "We are sorry for the missed visit. The van had broken down; you are first on the list now.",
        "The part is in the van. Is somebody on site tomorrow afternoon?",
    ],
    notes=[
        "Key is with the porter; ask for Mrs Lund.",
        "Narrow stairs: two people needed.",
        "Combine with the visit next door on the same day.",
    ],
    endings=["Done on site, signed by the customer.", "Installed, tested, and explained."],
    slots={"machine": _MACHINES, "place": _PLACES, "number": ["2", "3", "4", "9", "14", "18"]},
)

CHINA = Stories(
    customers=[
        (name, f"{address}@kehu.example")
        for name, address in {
            "王芳": "wang.fang",
            "李强": "li.qiang",
            "张伟": "zhang.wei",
            "刘洋": "liu.yang",
            "赵敏": "zhao.min",
            "孙丽": "sun.li",
            "周杰": "zhou.jie",
            "吴倩": "wu.qian",
            "郑爽": "zheng.shuang",
            "何勇": "he.yong",
        }.items()
    ],
    subjects=[
        (
            "{machine} 咖啡机显示故障 E{number}",
            "{place}的 {machine} 今天早上停机，屏幕显示 E{number}。重启后只能做一杯，随后又报错。",
            "故障,硬件",
        ),
        (
            "申请退款：发票 {invoice}",
            "发票 {invoice} 重复扣款，请核实后退回其中一笔，谢谢。",
            "退款,发票",
        ),
        (
            "无法收到验证码",
            "登录时一直收不到短信验证码，已经等了 {number} 分钟，换了手机也不行。",
            "账号",
        ),
        ("更换收货地址", "我们公司搬到了新的办公楼，请把咖啡豆的收货地址改为{place}。", "地址"),
        (
            "奶泡机不出奶泡",
            "{place}的 {machine} 清洗后不再出奶泡，只有热牛奶。请尽快安排检修。",
            "硬件",
        ),
        (
            "预约上门保养",
            "{machine} 已经使用一年，希望下周上午安排上门保养，地点是{place}。",
            "保养",
        ),
        (
            "请开具增值税专用发票",
            "请为订单 {invoice} 开具增值税专用发票，抬头和税号已在账户中填写。",
            "发票",
        ),
        (
            "咖啡豆送货延迟",
            "原定周一送达的咖啡豆还没有到，库存只够用 {number} 小时了。",
            "物流,加急",
        ),
        (
            "手机应用找不到设备",
            "手机和 {machine} 在同一个无线网络，应用里仍然搜索不到设备。",
            "应用,网络",
        ),
        ("咨询套餐内容", "想了解一下办公室畅饮套餐是否包含牛奶和纸杯，以及最短合同期限。", "咨询"),
    ],
    replies=[
        "您好，感谢您的反馈。请问方便发一张屏幕的照片吗？",
        "已为您登记，技术人员会在今天下午与您联系。",
        "退款已经提交，预计两个工作日内到账。",
        "新固件已修复此问题，今晚会自动更新。",
    ],
    notes=[
        "与上个月同一批次的水泵有关，请留意。",
        "客户周五有活动，请优先处理。",
        "已与仓库确认，备件有货。",
    ],
    endings=["客户确认问题已解决，谢谢配合。", "已上门处理完毕，客户签字确认。"],
    slots={
        "machine": _MACHINES,
        "place": ["上海办公室", "前台", "三楼茶水间", "苏州工厂", "会议中心", "杭州门店"],
        "number": ["07", "12", "20", "30", "48"],
        "invoice": ["S-2201", "S-2208", "S-2215", "S-2230", "S-2247"],
    },
)

STORIES = {
    "support": SUPPORT,
    "billing": BILLING,
    "field-service": FIELD,
    "customers-china": CHINA,
}
